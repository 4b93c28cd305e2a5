"""What the code of every operation looks like on every target: it calls nothing, and loops of it are vectors."""

from __future__ import annotations

import pytest

from passes import scalar
from passes.codegen.object_code import emit
from passes.scalar.operations import BOOL, FLOAT, INTEGER, UNARY
from tensorkiln.dtypes import DType
from tensorkiln.target import LEVELS, LINUX_X86_64, Target
from tests.codegen.objects import undefined_symbols
from tests.scalar.kernel import Body, assembler, llvm_ir
from tests.scalar.values import FLOATS, INTEGERS

BASELINE = Target(kind="cpu", triple=LINUX_X86_64, cpu="x86-64", features=("sse2",))
TARGETS = [
    pytest.param(BASELINE, id="baseline"),
    *(pytest.param(Target.parse(f"cpu:{level}"), id=level) for level in LEVELS),
]
DTYPES = (*FLOATS, *INTEGERS, DType.BOOL)


def _binary(kind: str, dtype: DType) -> Body:
    result = DType.UINT8 if kind in ("cmplt", "cmpne") else dtype
    return lambda traits, values: scalar.cast(
        result, dtype, scalar.binop(kind, dtype, values[0], values[1], result, traits=traits), traits=traits
    )


def _unary(kind: str, dtype: DType) -> Body:
    return lambda traits, values: scalar.unary(kind, dtype, values[0], traits=traits)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_operation_calls_a_library(dtype: DType, target: Target) -> None:
    kinds = [*FLOAT, "pow"] if dtype.is_float else [*BOOL] if dtype.is_bool else [*INTEGER]
    for kind in kinds:
        code = emit(llvm_ir(_binary(kind, dtype), (dtype, dtype), dtype, target), target)
        assert undefined_symbols(code) == frozenset(), kind
    for kind in ("neg", *UNARY) if dtype.is_float else ("neg",):
        code = emit(llvm_ir(_unary(kind, dtype), (dtype,), dtype, target), target)
        assert undefined_symbols(code) == frozenset(), kind


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", DTYPES)
def test_no_cast_calls_a_library(source: DType, target: Target) -> None:
    for destination in DTYPES:
        body: Body = lambda traits, values, to=destination: scalar.cast(source, to, values[0], traits=traits)  # noqa: E731
        code = emit(llvm_ir(body, (source,), destination, target), target)
        # A loop that changes no bits is a copy, and every loader has memcpy.
        assert undefined_symbols(code) <= {"memcpy"}, destination


@pytest.mark.parametrize(("target", "register"), [("cpu:x86-64-v3", "ymm"), ("cpu:x86-64-v4", "zmm")])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", list(UNARY))
def test_functions_of_floats_are_vectors_of_the_full_width(kind: str, dtype: DType, target: str, register: str) -> None:
    assert f"%{register}" in assembler(_unary(kind, dtype), (dtype,), dtype, target)


@pytest.mark.parametrize("kind", ["add", "div", "max", "pow", "mod", "cmplt"])
def test_binary_operations_of_float32_are_vectors(kind: str) -> None:
    assert "%ymm" in assembler(_binary(kind, DType.FLOAT32), (DType.FLOAT32,) * 2, DType.FLOAT32, "cpu:x86-64-v3")


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT16, DType.INT32, DType.UINT32])
@pytest.mark.parametrize("kind", ["idiv", "mod", "pow", "shl", "shr"])
def test_integer_operations_are_vectors_and_divide_nothing_one_by_one(kind: str, dtype: DType) -> None:
    text = assembler(_binary(kind, dtype), (dtype, dtype), dtype, "cpu:x86-64-v3")
    assert "%ymm" in text
    assert "idivl" not in text
