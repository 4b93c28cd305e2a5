"""Reduce_axis, contract, wmma."""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, symbol

from .elementwise import finite_maximum
from .family import NUMBERS, VALUES, Family
from .shapes import extent, shape
from .sketch import Sketch
from .tolerance import Tolerance, sum_tolerance
from .values import Flavour

KINDS = ("sum", "max", "prod")
_FLAVOURS: dict[str, tuple[Flavour, ...]] = {
    "sum": ("grid", "grid", "special grid", "moderate"),
    "max": ("wild",),
    "prod": ("near one",),
}


def draw_reduce_axis(sketch: Sketch, dtype: DType, kind: str) -> None:
    x = sketch.input(dtype, shape(sketch), sketch.pick(_FLAVOURS[kind]))
    axes = some_axes(sketch, len(sketch.dims(x)))
    allow_reduction(sketch, kind, x, axes)
    sketch.output(reduced(sketch, kind, x, axes, keep=sketch.flag()))


def some_axes(sketch: Sketch, rank: int) -> list[int]:
    """Any subset in any order; usually not empty."""
    least = 1 if rank and sketch.integer(0, 9) else 0
    return sketch.draw(st.lists(st.integers(0, rank - 1), unique=True, min_size=least, max_size=rank)) if rank else []


def reduced(sketch: Sketch, kind: str, x: int, axes: list[int], *, keep: bool) -> int:
    dims = sketch.dims(x)
    if keep:
        result = tuple(1 if axis in axes else dim for axis, dim in enumerate(dims))
    else:
        result = tuple(dim for axis, dim in enumerate(dims) if axis not in axes)
    fields = {"in_var": x, "reduce_op_kind": kind, "axes": axes}
    return sketch.add("reduce_axis", sketch.dtype(x), result, must_state=not keep, **fields)


def allow_reduction(sketch: Sketch, kind: str, x: int, axes: list[int]) -> None:
    """What the free order of a float reduction of an input may change: nothing where it has no axes."""
    if not axes:
        return
    dtype, terms = sketch.dtype(x), prod(sketch.shape(x)[axis] for axis in axes)
    if kind == "sum" and terms:
        sketch.tolerate(sum_tolerance(dtype, terms, finite_maximum(sketch.array_of(x))))
    elif kind == "prod" and dtype.is_float:
        # 3**12 fits in 24 bits: the factors of `near one` multiply exactly in float32; 16 bits round once.
        sketch.tolerate(Tolerance(ulps=1))


def draw_contract(sketch: Sketch, dtype: DType, _op: str) -> None:
    shared = [extent(sketch, 6) for _ in range(sketch.integer(0, 2))]
    free_a = [extent(sketch, 5) for _ in range(sketch.integer(0, 2))]
    free_b = [extent(sketch, 5, sketch.symbolic) for _ in range(sketch.integer(int(sketch.symbolic), 2))]
    a, axes_a = _shuffled(sketch, dtype, shared, free_a)
    b, axes_b = _shuffled(sketch, dtype, shared, free_b)
    dims_a, dims_b = sketch.dims(a), sketch.dims(b)
    left = [dim for axis, dim in enumerate(dims_a) if axis not in axes_a]
    right = [dim for axis, dim in enumerate(dims_b) if axis not in axes_b]
    allow_product(sketch, dtype, a, b, prod(sketch.values(shared)))
    pairs = list(zip(axes_a, axes_b, strict=True))
    sketch.output(sketch.add("contract", dtype, [*left, *right], in_vars=[a, b], contraction_axes=pairs))


def _shuffled(sketch: Sketch, dtype: DType, shared: list[Dim], free: list[Dim]) -> tuple[int, list[int]]:
    """An input with these axes in a drawn order, and where the shared ones came to stand."""
    dims = [*shared, *free]
    order = sketch.draw(st.permutations(range(len(dims))))
    var = sketch.input(dtype, tuple(dims[source] for source in order), _product_flavour(sketch))
    return var, [order.index(source) for source in range(len(shared))]


def _product_flavour(sketch: Sketch) -> Flavour:
    return sketch.pick(["grid", "grid", "special grid", "moderate"])


def allow_product(sketch: Sketch, dtype: DType, a: int, b: int, terms: int, c: int | None = None) -> None:
    """What a sum of `terms` products of two inputs, and one more summand, may lose in free order."""
    greatest = finite_maximum(sketch.array_of(a)) * finite_maximum(sketch.array_of(b))
    if c is not None:
        greatest = max(greatest, finite_maximum(sketch.array_of(c)))
    sketch.tolerate(sum_tolerance(dtype, terms + 1, greatest))


def draw_wmma(sketch: Sketch, dtype: DType, _op: str) -> None:
    """`dtype` is that of the matrices; c is as wide or wider."""
    accumulators = [kind for kind in NUMBERS if _accumulates(dtype, kind)]
    wide = sketch.pick(accumulators)
    m, n, k = (sketch.pick([1, 2, 3, 4, 8, 16, 0]) for _ in range(3))
    flavour = _product_flavour(sketch)
    a, b = sketch.input(dtype, _tile(sketch, m, k), flavour), sketch.input(dtype, (k, n), flavour)
    c = sketch.input(wide, (m, n), flavour)
    allow_product(sketch, wide, a, b, k, c)
    sketch.output(sketch.add("wmma", wide, (m, n), a_var=a, b_var=b, c_var=c, m=m, n=n, k=k))


def _tile(sketch: Sketch, m: int, k: int) -> tuple[Dim, Dim]:
    """(m, k), or with a symbol that has to be m at the call."""
    if not sketch.symbolic:
        return m, k
    sketch.declare("n", m, 0, m + sketch.integer(0, 3))
    return symbol("n"), k


def _accumulates(source: DType, result: DType) -> bool:
    if source.is_float != result.is_float:
        return False
    return source is result or result.bits > source.bits or (source.is_integer and result.bits == source.bits)


FAMILIES = {
    "reduce_axis": Family(VALUES, draw_reduce_axis, lambda _: KINDS),
    "contract": Family(VALUES, draw_contract),
    "wmma": Family(NUMBERS, draw_wmma),
}
