"""Every operation on scalars becomes PTX, which an assembler takes and which keeps everything in registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import pytest

from passes import scalar
from passes.codegen import cubin, nvptx
from passes.scalar.operations import BOOL, FLOAT, INTEGER, UNARY
from tensorkiln.dtypes import DType
from tensorkiln.target import Target
from tests.codegen.assemblers import needs_assembler
from tests.numerics.cases.turns import EXAMPLES
from tests.scalar.kernel import Body, Loop, llvm_ir_of
from tests.scalar.values import FLOATS, INTEGERS

DTYPES = (*FLOATS, *INTEGERS, DType.BOOL)
ARCHES = ("sm_70", "sm_90", "sm_120")
ASSEMBLED = {"sm_70": "sm_75", "sm_90": "sm_90", "sm_120": "sm_120"}
"""For which architecture the PTX is assembled: later ptxas have dropped the oldest, whose PTX the next one runs."""
BY_TURNS = [
    (dtype, arch)
    for place, dtype in enumerate(DTYPES)
    for turn, arch in enumerate(ARCHES)
    if EXAMPLES > 1 or (place + turn) % len(ARCHES) == 0
]
"""Which PTX is made: that of each dtype for one architecture in turn, or with KILN_EXAMPLES for all."""
# What is made for a dtype is made once, so its tests are done by one process.
OF_EVERY_DTYPE = pytest.mark.parametrize(
    ("dtype", "arch"),
    [pytest.param(dtype, arch, marks=pytest.mark.xdist_group(f"ptx {dtype}")) for dtype, arch in BY_TURNS],
    ids=str,
)
POWERS = (2.0, 3.0, 0.5, -1.0)

Case = tuple[str, Body, Sequence[DType], DType]


def cases(dtype: DType) -> Iterator[Case]:
    """Operations on a dtype: a name, what computes one element, the dtypes of its operands and of its result."""
    yield from _binops(dtype)
    for kind in ("neg", *UNARY) if dtype.is_float else ("neg",):
        yield kind, _unary(kind, dtype), (dtype,), dtype
    yield "where", _ternary("where", dtype), (DType.BOOL, dtype, dtype), dtype
    yield "mulacc", _ternary("mulacc", dtype), (dtype,) * 3, dtype
    for kind in ("sum", "prod", "max"):
        yield f"reduce {kind}", _combine(kind, dtype), (dtype,) * 2, dtype
    for other in DTYPES:
        yield f"cast to {other}", _cast(dtype, other), (dtype,), other
        if other.itemsize == dtype.itemsize:
            yield f"bitcast to {other}", _bitcast(dtype, other), (dtype,), other
    if dtype is DType.INT64:
        yield "threefry", lambda _, values: scalar.threefry(values[0], values[1]), (dtype,) * 2, dtype


def _binops(dtype: DType) -> Iterator[Case]:
    kinds = [*FLOAT, "pow"] if dtype.is_float else [*BOOL] if dtype.is_bool else [*INTEGER]
    for kind in kinds:
        result = DType.BOOL if kind in ("cmplt", "cmpne") else dtype
        yield kind, _binop(kind, dtype, result), (dtype,) * 2, result
    for exponent in POWERS if dtype.is_float else ():
        yield f"pow {exponent}", _power(dtype, exponent), (dtype,), dtype


def _binop(kind: str, dtype: DType, result: DType) -> Body:
    return lambda traits, values: scalar.binop(kind, dtype, values[0], values[1], result, traits=traits)


def _power(dtype: DType, exponent: float) -> Body:
    return lambda traits, values: scalar.binop(
        "pow", dtype, values[0], scalar.constant(dtype, exponent), dtype, traits=traits
    )


def _unary(kind: str, dtype: DType) -> Body:
    return lambda traits, values: scalar.unary(kind, dtype, values[0], traits=traits)


def _ternary(kind: str, dtype: DType) -> Body:
    return lambda traits, values: scalar.ternary(kind, dtype, values[0], values[1], values[2], traits=traits)


def _combine(kind: str, dtype: DType) -> Body:
    return lambda traits, values: scalar.reduce_combine(kind, dtype, values[0], values[1], traits=traits)


def _cast(source: DType, destination: DType) -> Body:
    return lambda traits, values: scalar.cast(source, destination, values[0], traits=traits)


def _bitcast(source: DType, destination: DType) -> Body:
    return lambda _, values: scalar.bitcast_same_width(source, destination, values[0])


@cache
def kernels(dtype: DType) -> tuple[str, int]:
    """LLVM IR with a kernel for every operation, and how many there are."""
    found = enumerate(cases(dtype))
    loops = {f"k{number}": Loop(body, inputs, output) for number, (_, body, inputs, output) in found}
    text = llvm_ir_of(loops, scalar.traits_of(Target.parse("cuda:sm_90")))
    return text.replace("define void @", "define ptx_kernel void @"), len(loops)


@cache
def emitted(dtype: DType, arch: str) -> str:
    return nvptx.emit(kernels(dtype)[0], Target.parse(f"cuda:{arch}"))


def test_the_kernels_are_those_of_every_cuda_target() -> None:
    traits = {scalar.traits_of(Target.parse(f"cuda:{arch}")) for arch in ARCHES}
    assert traits == {scalar.traits_of(Target.parse("cuda:sm_90"))}


@OF_EVERY_DTYPE
def test_every_operation_is_exact_ptx_in_registers(dtype: DType, arch: str) -> None:
    ptx = emitted(dtype, arch)
    assert ptx.count(".entry") == kernels(dtype)[1]
    assert ".local" not in ptx
    assert ".func" not in ptx
    assert ".approx" not in ptx
    assert ".ftz" not in ptx


def test_every_dtype_and_every_architecture_is_here() -> None:
    assert {dtype for dtype, _ in BY_TURNS} == set(DTYPES)
    assert {arch for _, arch in BY_TURNS} == set(ARCHES)


@needs_assembler
@OF_EVERY_DTYPE
def test_an_assembler_takes_every_operation_and_spills_nothing(dtype: DType, arch: str) -> None:
    usage = cubin.assemble(emitted(dtype, arch), ASSEMBLED[arch]).usage
    assert len(usage) == kernels(dtype)[1]
    assert {entry: one for entry, one in usage.items() if one.spill_store_bytes or one.spill_load_bytes} == {}
