"""Which argument the value of a symbolic size is read from at a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...errors import CallInputError, UnsupportedGraphError
from ...expr import Dim, evaluate, free_symbols


@dataclass(frozen=True, slots=True)
class Place:
    """An axis of an argument, whose size is `factor` times the symbol, plus `offset`."""

    argument: int
    axis: int
    factor: int
    offset: int

    def value(self, name: str, size: int) -> int:
        """The symbol where the axis has this size. CallInputError where no whole number is."""
        value, rest = divmod(size - self.offset, self.factor)
        if rest:
            raise CallInputError(f"axis {self.axis} of an argument has the size {size}, which no {name} gives")
        return value


def size_places(shapes: Sequence[Sequence[Dim]], symbols: Mapping[str, object]) -> dict[str, Place]:
    """A place for each symbol. UnsupportedGraphError for one that no axis determines by itself."""
    found: dict[str, Place] = {}
    for argument, shape in enumerate(shapes):
        for axis, dim in enumerate(shape):
            place = _linear(argument, axis, dim)
            if place is not None:
                name, where = place
                if name not in found or found[name].factor != 1:
                    found[name] = where
    missing = sorted(symbols.keys() - found.keys())
    if missing:
        raise UnsupportedGraphError(
            f"no argument has an axis that gives the size {missing[0]} by itself, as `{missing[0]}` or `2*{missing[0]}`"
        )
    return found


def _linear(argument: int, axis: int, dim: Dim) -> tuple[str, Place] | None:
    names = () if isinstance(dim, int) else tuple(free_symbols(dim))
    # A call, such as a division, is no line, and may have no value at small sizes.
    if len(names) != 1 or "(" in str(dim):
        return None
    (name,) = names
    offset, once, twice = (evaluate(dim, {name: value}) for value in range(3))
    factor = once - offset
    is_line = factor > 0 and twice - once == factor
    return (name, Place(argument, axis, factor, offset)) if is_line else None
