"""A strategy for each node kind."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from tensorkiln.dtypes import DType

from . import (
    conversion,
    elementwise,
    graph_nodes,
    indexing,
    loops,
    markers,
    memory,
    movement,
    reduction,
    scalars,
    views,
)
from .sketch import Case, Sketch

FAMILIES = {
    **elementwise.FAMILIES,
    **movement.FAMILIES,
    **views.FAMILIES,
    **reduction.FAMILIES,
    **indexing.FAMILIES,
    **conversion.FAMILIES,
    **memory.FAMILIES,
    **markers.FAMILIES,
    **scalars.FAMILIES,
    **graph_nodes.FAMILIES,
    **loops.FAMILIES,
}

KINDS: tuple[str, ...] = tuple(FAMILIES)
"""All 45 node kinds."""


def dtypes_of(kind: str) -> tuple[DType, ...]:
    """The dtypes that `graph_for` takes for a kind: those of its data operand, that is the source of a cast or bitcast,
    the operands of a comparison, the matrices of wmma, the buffer of a buffer_view."""
    return tuple(FAMILIES[kind].dtypes)


@cache
def ops_of(kind: str, dtype: DType) -> tuple[str, ...]:
    """The variants of a kind: the ops of binop, unary and ternary, the kinds of reduce_axis, the target dtypes of cast
    and bitcast; of any other kind the one variant \"\"."""
    return tuple(FAMILIES[kind].ops(dtype))


def variants() -> tuple[tuple[str, DType, str], ...]:
    """Every (kind, dtype, op) that `graph_for` takes."""
    return tuple((kind, dtype, op) for kind in KINDS for dtype in dtypes_of(kind) for op in ops_of(kind, dtype))


KINDS_AND_DTYPES = tuple(dict.fromkeys((kind, dtype) for kind, dtype, _ in variants()))
"""What there is to draw where the op of a kind is drawn too."""


@cache
@st.composite
def graph_for(draw: st.DrawFn, kind: str, dtype: DType, symbolic: bool, op: str | None = None) -> Case:
    """Small valid graphs with one node of `kind` on `dtype`, and what to call them with; `op` fixes the variant.

    With `symbolic` an axis at least is an expression over symbols wherever the kind has an axis at all.
    """
    sketch = Sketch(draw, symbolic)
    FAMILIES[kind].draw(sketch, dtype, op if op is not None else sketch.pick(ops_of(kind, dtype)))
    return sketch.case()
