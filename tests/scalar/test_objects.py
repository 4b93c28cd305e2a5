"""What the code of every operation looks like on every target: it calls nothing, and loops of it are vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import pytest

from passes import scalar
from passes.codegen.object_code import emit
from passes.scalar import Traits, traits_of
from passes.scalar.operations import BOOL, FLOAT, INTEGER, UNARY
from tensorkiln.dtypes import DType
from tensorkiln.target import LEVELS, LINUX_X86_64, Target
from tests.codegen.objects import undefined_symbols
from tests.numerics.cases.turns import EXAMPLES
from tests.scalar.kernel import Loop, assembler_of, conversion, llvm_ir_of
from tests.scalar.values import FLOATS, INTEGERS

BASELINE = Target(kind="cpu", triple=LINUX_X86_64, cpu="x86-64", features=("sse2",))
TARGETS = {"baseline": BASELINE} | {level: Target.parse(f"cpu:{level}") for level in LEVELS}
DTYPES = (*FLOATS, *INTEGERS, DType.BOOL)
OBJECTS = [
    (dtype, name)
    for place, dtype in enumerate(DTYPES)
    for turn, name in enumerate(TARGETS)
    if EXAMPLES > 1 or (place + turn) % 2 == 0
]
"""Each dtype for every second target, by turns, or with KILN_EXAMPLES for all."""


def of_every(name: str, dtypes: Sequence[DType]) -> pytest.MarkDecorator:
    """Parameters of tests; what is made for a dtype is made once, so its tests are done by one process."""
    grouped = [pytest.param(dtype, marks=pytest.mark.xdist_group(f"objects {dtype}")) for dtype in dtypes]
    return pytest.mark.parametrize(name, grouped, ids=str)


def _binary(kind: str, dtype: DType) -> Loop:
    result = DType.UINT8 if kind in ("cmplt", "cmpne") else dtype
    return Loop(
        lambda traits, values: scalar.cast(
            result, dtype, scalar.binop(kind, dtype, values[0], values[1], result, traits=traits), traits=traits
        ),
        (dtype, dtype),
        dtype,
    )


def _unary(kind: str, dtype: DType) -> Loop:
    return Loop(lambda traits, values: scalar.unary(kind, dtype, values[0], traits=traits), (dtype,), dtype)


# What is made for a dtype is made once, so its tests are done by one process.
OF_EVERY_OBJECT = pytest.mark.parametrize(
    ("dtype", "name"),
    [pytest.param(dtype, name, marks=pytest.mark.xdist_group(f"objects {dtype}")) for dtype, name in OBJECTS],
    ids=str,
)


@cache
def operations(dtype: DType, traits: Traits) -> str:
    """LLVM IR with every operation on a dtype."""
    binary = [*FLOAT, "pow"] if dtype.is_float else [*BOOL] if dtype.is_bool else [*INTEGER]
    unary = ("neg", *UNARY) if dtype.is_float else ("neg",)
    loops = {f"binop_{kind}": _binary(kind, dtype) for kind in binary}
    return llvm_ir_of(loops | {f"unary_{kind}": _unary(kind, dtype) for kind in unary}, traits)


@cache
def casts(source: DType, traits: Traits) -> str:
    """LLVM IR with the casts of a dtype to every other."""
    return llvm_ir_of({f"to_{destination}": conversion(source, destination) for destination in DTYPES}, traits)


def test_floats_and_integers_are_made_for_every_target() -> None:
    for dtypes in (FLOATS, INTEGERS):
        assert {name for dtype, name in OBJECTS if dtype in dtypes} == TARGETS.keys()
    assert {dtype for dtype, _ in OBJECTS} == set(DTYPES)


@OF_EVERY_OBJECT
def test_no_operation_calls_a_library(dtype: DType, name: str) -> None:
    target = TARGETS[name]
    assert undefined_symbols(emit(operations(dtype, traits_of(target)), target)) == frozenset()


@OF_EVERY_OBJECT
def test_no_cast_calls_a_library(dtype: DType, name: str) -> None:
    target = TARGETS[name]
    # A loop that changes no bits is a copy, and every loader has memcpy.
    assert undefined_symbols(emit(casts(dtype, traits_of(target)), target)) <= {"memcpy"}


@cache
def vectors(make: Callable[[str, DType], Loop], kinds: tuple[str, ...], dtype: DType, target: str) -> dict[str, str]:
    """Assembler text of each kind of operation on a dtype."""
    # Not called by its kind alone: LLVM knows functions called `sin` and `pow`.
    return assembler_of({f"loop_{kind}": make(kind, dtype) for kind in kinds}, target)


@pytest.mark.parametrize(("target", "register"), [("cpu:x86-64-v3", "ymm"), ("cpu:x86-64-v4", "zmm")])
@of_every("dtype", FLOATS)
@pytest.mark.parametrize("kind", list(UNARY))
def test_functions_of_floats_are_vectors_of_the_full_width(kind: str, dtype: DType, target: str, register: str) -> None:
    assert f"%{register}" in vectors(_unary, tuple(UNARY), dtype, target)[f"loop_{kind}"]


FLOAT_VECTORS = ("add", "div", "max", "pow", "mod", "cmplt")
INTEGER_VECTORS = ("idiv", "mod", "pow", "shl", "shr")


@pytest.mark.xdist_group("objects float32")
@pytest.mark.parametrize("kind", FLOAT_VECTORS)
def test_binary_operations_of_float32_are_vectors(kind: str) -> None:
    assert "%ymm" in vectors(_binary, FLOAT_VECTORS, DType.FLOAT32, "cpu:x86-64-v3")[f"loop_{kind}"]


@of_every("dtype", [DType.INT8, DType.UINT16, DType.INT32, DType.UINT32])
@pytest.mark.parametrize("kind", INTEGER_VECTORS)
def test_integer_operations_are_vectors_and_divide_nothing_one_by_one(kind: str, dtype: DType) -> None:
    text = vectors(_binary, INTEGER_VECTORS, dtype, "cpu:x86-64-v3")[f"loop_{kind}"]
    assert "%ymm" in text
    assert "idivl" not in text
