"""Binop, unary, ternary."""

from __future__ import annotations

import numpy as np

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, symbol

from .family import CONDITIONS, FLOATS, INTEGERS, NUMBERS, STORED, VALUES, Family
from .shapes import shape
from .sketch import Sketch
from .tolerance import EPSILON, Tolerance, tolerance
from .values import Array, Flavour, related

_BITS = (*INTEGERS, DType.BOOL)
BINOPS: dict[str, tuple[DType, ...]] = {
    "add": VALUES,
    "mul": VALUES,
    "sub": NUMBERS,
    "div": NUMBERS,
    "idiv": INTEGERS,
    "fdiv": FLOATS,
    "mod": NUMBERS,
    "pow": NUMBERS,
    "max": VALUES,
    "min": VALUES,
    "cmplt": VALUES,
    "cmpne": VALUES,
    "xor": _BITS,
    "or": _BITS,
    "and": _BITS,
    "shl": INTEGERS,
    "shr": INTEGERS,
}
UNARY = {"neg": VALUES, **dict.fromkeys(("log2", "exp2", "sin", "sqrt", "recip", "trunc"), FLOATS)}
TERNARY = {"where": STORED, "mulacc": VALUES}
COMPARISONS = ("cmplt", "cmpne")
SHIFTS = ("shl", "shr")


def ops_in(table: dict[str, tuple[DType, ...]], dtype: DType) -> list[str]:
    return [op for op, dtypes in table.items() if dtype in dtypes]


def operand(sketch: Sketch, dtype: DType, dims: tuple[Dim, ...], flavour: Flavour = "wild") -> int:
    """An input of that shape, or a scalar (an input or a constant), which mixes with any shape."""
    role = sketch.integer(0, 5)
    if role > 1:
        return sketch.input(dtype, respelled(sketch, dims) if role == 2 else dims, flavour)
    scalar = sketch.input(dtype, (), flavour)
    return scalar if role else sketch.constant(dtype, _constant(sketch, dtype))


def respelled(sketch: Sketch, dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """In a symbolic case the same shape with its last axis another symbol, which has to be equal at the call."""
    if not sketch.symbolic or not dims or "q" in sketch.symbols:
        return dims
    size = sketch.value(dims[-1])
    sketch.declare("q", size, 0, size + 2)
    return (*dims[:-1], symbol("q"))


def _constant(sketch: Sketch, dtype: DType) -> float | int | bool:
    if dtype.is_bool:
        return sketch.flag()
    if dtype.is_integer:
        return sketch.pick([0, 1, 2, 3, int(dtype.max), int(dtype.min)])
    if dtype.is_narrow:
        return sketch.pick([0, 1, dtype.max, dtype.min])
    return sketch.pick([0.0, -0.0, 1.0, -1.5, 0.5, 3.0, float("inf"), float("nan")])


def draw_binop(sketch: Sketch, dtype: DType, op: str) -> None:
    dims = shape(sketch)
    a = sketch.input(dtype, dims)
    b = _amounts(sketch, dtype, dims) if op in SHIFTS else _second(sketch, a)
    if sketch.flag() and op not in SHIFTS:
        a, b = b, a
    result = sketch.pick(CONDITIONS) if op in COMPARISONS else dtype
    sketch.tolerate(tolerance(op, dtype))
    shared = sketch.dims(a) or sketch.dims(b)
    sketch.output(sketch.add("binop", result, shared, op=op, a_var=a, b_var=b))


def _second(sketch: Sketch, a: int) -> int:
    """Often an input whose elements equal, oppose or cancel those of `a`; rarely `a` itself."""
    choice = sketch.integer(0, 9)
    if choice == 9:
        return a
    dtype, dims = sketch.dtype(a), sketch.dims(a)
    if choice < 4:
        return sketch.input_of(related(sketch.rng, dtype, sketch.array_of(a)), dims)
    return operand(sketch, dtype, dims)


def _amounts(sketch: Sketch, dtype: DType, dims: tuple[Dim, ...]) -> int:
    """Mostly about the width, with negative and huge ones between."""
    kind = sketch.pick([dtype, DType.UINT32])
    if sketch.integer(0, 3) == 0:
        return operand(sketch, kind, dims)
    low = 0 if kind.is_unsigned else -3
    amounts = sketch.rng.integers(low, dtype.bits + 4, sketch.values(dims))
    return sketch.input_of(np.asarray(amounts).astype(kind.numpy), dims)


def draw_unary(sketch: Sketch, dtype: DType, op: str) -> None:
    x = sketch.input(dtype, shape(sketch))
    sketch.tolerate(tolerance(op, dtype))
    sketch.output(sketch.like("unary", x, op=op, in_var=x))


def draw_ternary(sketch: Sketch, dtype: DType, op: str) -> None:
    dims = shape(sketch)
    if op == "mulacc":
        _draw_mulacc(sketch, dtype, dims)
        return
    condition = operand(sketch, sketch.pick(CONDITIONS), dims)
    b, c = operand(sketch, dtype, dims), operand(sketch, dtype, dims)
    _ternary(sketch, op, dtype, condition, b, c)


def _draw_mulacc(sketch: Sketch, dtype: DType, dims: tuple[Dim, ...]) -> None:
    # A fused product skips one rounding, so the products must not overflow, and the sum may keep what rounding loses.
    flavour = "special grid" if dtype.is_float else "wild"
    a, b, c = (sketch.input(dtype, dims, flavour) for _ in range(3))
    if dtype.is_float:
        lost = EPSILON[dtype] * finite_maximum(sketch.array_of(a)) * finite_maximum(sketch.array_of(b))
        sketch.tolerate(Tolerance(ulps=1, absolute=lost, signed_zeros=False))
    _ternary(sketch, "mulacc", dtype, a, b, c)


def _ternary(sketch: Sketch, op: str, dtype: DType, a: int, b: int, c: int) -> None:
    dims = sketch.dims(a) or sketch.dims(b) or sketch.dims(c)
    sketch.output(sketch.add("ternary", dtype, dims, op=op, a_var=a, b_var=b, c_var=c))


def finite_maximum(values: Array) -> float:
    """The greatest finite magnitude; 0 of nothing."""
    wide = np.abs(values.astype(np.float64))
    return float(np.max(wide[np.isfinite(wide)], initial=0.0))


FAMILIES = {
    "binop": Family(VALUES, draw_binop, lambda dtype: ops_in(BINOPS, dtype)),
    "unary": Family(VALUES, draw_unary, lambda dtype: ops_in(UNARY, dtype)),
    "ternary": Family(STORED, draw_ternary, lambda dtype: ops_in(TERNARY, dtype)),
}
