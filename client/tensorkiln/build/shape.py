"""Shapes: their JSON spelling, their strides, and limits that vanish where the symbols' bounds prove them idle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from ..expr import Dim, maximum, minimum, product, sub, to_wire
from ..nearest import quoted

Shape: TypeAlias = tuple[Dim, ...]
ShapeLike: TypeAlias = "Sequence[Dim | str]"


class KnowsSymbols(Protocol):
    """A builder, as far as it knows the bounds of its symbols."""

    def bounds(self, dim: Dim) -> tuple[int, int]: ...


def wire(dims: Sequence[Dim]) -> list[Any]:
    """Dims in their JSON spelling."""
    return [to_wire(dim) for dim in dims]


def text(dims: Sequence[Dim]) -> str:
    """Dims as a message shows them."""
    return f"({', '.join(map(str, dims))})"


def shape_problem(shape: object) -> str:
    """The message for a shape that is not a sequence of dimensions."""
    if isinstance(shape, int | str):
        return f"a shape is a tuple of dimensions, such as ({shape!r},), not {quoted(shape)}"
    return f"a shape is a tuple of dimensions, such as (n, 64), not {quoted(shape)}"


def dim_problem(dim: object, problem: str) -> str:
    """The message for a value that is not a dimension."""
    if dim is None:
        return 'None is not a dimension: declare a symbol for an unknown size, as in n = builder.symbol("n", 1, 64)'
    if isinstance(dim, float) and dim.is_integer():
        return f"{dim!r} is not a dimension; write {int(dim)}"
    if isinstance(dim, str):
        return (
            f"{quoted(dim)} is not the name of a symbol; write arithmetic with what builder.symbol returns, as in n * 2"
        )
    return f"{quoted(dim)} is not a dimension: {problem}"


def row_major_strides(shape: Sequence[Dim]) -> Shape:
    """Elements between neighbours along each axis of a contiguous tensor."""
    return tuple(product(shape[axis + 1 :]) for axis in range(len(shape)))


def at_most(builder: KnowsSymbols, dim: Dim, ceiling: Dim) -> Dim:
    """`min(dim, ceiling)`, without the minimum where the bounds of the symbols decide it."""
    low, high = builder.bounds(sub(ceiling, dim))
    if low >= 0:
        return dim
    return ceiling if high <= 0 else minimum(dim, ceiling)


def at_least(builder: KnowsSymbols, dim: Dim, floor: Dim) -> Dim:
    """`max(dim, floor)`, without the maximum where the bounds of the symbols decide it."""
    low, high = builder.bounds(sub(dim, floor))
    if low >= 0:
        return dim
    return floor if high <= 0 else maximum(dim, floor)
