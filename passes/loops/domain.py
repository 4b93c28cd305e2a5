"""The loops that compute a value: one per dimension of size other than 1, parallel or reduction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tensorkiln import expr
from tensorkiln.expr import Dim

from ..values import Value
from .index_space import Index, IndexSpace, rejoin

MOST_WINDOW: Final = 64
"""Most points of a window that a strip of vectors reduces in registers: longer reductions sum columns in memory, and
read a padded image that is stored.
"""


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over `0 .. extent - 1`."""

    name: str
    extent: Dim
    is_reduction: bool = False


@dataclass(frozen=True, slots=True)
class Domain:
    """The loops of a stage, and the index they compute and store in terms of them.

    `positions` has one entry per dimension, of size other than 1, of the computed value: the root itself for a map, the
    reduced operand for a reduction. `address` is the row-major position in the root that the parallel loops write.
    """

    loops: tuple[Loop, ...]
    positions: tuple[Dim, ...]
    address: Dim

    @property
    def parallel(self) -> tuple[Loop, ...]:
        return tuple(loop for loop in self.loops if not loop.is_reduction)

    @property
    def reduction(self) -> tuple[Loop, ...]:
        return tuple(loop for loop in self.loops if loop.is_reduction)

    def walks_as(self, other: Domain) -> bool:
        """Whether both have the same loops, except for their names."""
        loops = [[(loop.extent, loop.is_reduction) for loop in domain.loops] for domain in (self, other)]
        return loops[0] == loops[1]

    def index(self, shape: Sequence[Dim]) -> Index:
        """The index into a value of `shape`, whose dimensions other than 1 are those of the domain."""
        positions = iter(self.positions)
        return tuple(0 if extent == 1 else next(positions) for extent in shape)

    def over(self, loops: Iterable[Loop], values: Mapping[str, Dim]) -> Domain:
        """The same points over other loops; `values` gives the old loop indices in terms of them."""
        return replace(
            self,
            loops=tuple(loops),
            positions=tuple(rejoin(expr.substitute(position, values)) for position in self.positions),
            address=rejoin(expr.substitute(self.address, values)),
        )


def extent_of(loops: Iterable[Loop]) -> Dim:
    """The number of points of the loops together."""
    return expr.product(loop.extent for loop in loops)


def is_window(loops: Iterable[Loop]) -> bool:
    """Whether the reduction loops have so few points that a sum stays in registers."""
    points = extent_of(loop for loop in loops if loop.is_reduction)
    return isinstance(points, int) and points <= MOST_WINDOW


def traced_value(root: Value) -> Value:
    """The value whose elements the loops of `root` compute: a reduction's operand, or the root itself."""
    return root.operands[0] if root.kind == "reduce_axis" else root


def domain_of(root: Value, space: IndexSpace, prefix: str) -> Domain:
    """The loops of `root`, called `prefix0, prefix1, …` in the order of the dimensions."""
    axes = frozenset(root.ints("axes")) if root.kind == "reduce_axis" else frozenset[int]()
    loops: list[Loop] = []
    stored: list[Dim] = []
    stored_shape: list[Dim] = []
    for axis, extent in enumerate(traced_value(root).shape):
        if extent == 1:
            continue
        loop = Loop(f"{prefix}{len(loops)}", extent, axis in axes)
        position = space.add(loop.name, extent)
        loops.append(loop)
        if axis not in axes:
            stored.append(position)
            stored_shape.append(extent)
    positions = tuple(expr.symbol(loop.name) for loop in loops)
    return Domain(tuple(loops), positions, space.flatten(tuple(stored), stored_shape))
