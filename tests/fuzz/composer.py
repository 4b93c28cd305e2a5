"""A graph that is being composed with the builder; every choice is drawn, so hypothesis shrinks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tensorkiln.build import Builder, Tensor
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, add, evaluate, floordiv, idiv, product, sub
from tensorkiln.graph import Graph

T = TypeVar("T")
UNFUSED, ANY_SCHEDULE = ":unfused", ":any"


@dataclass(frozen=True, slots=True)
class Way:
    """How a graph is compiled: for which target, with fusion or without, and with the schedules that are expected to be
    the fastest or with `any_schedule` that was offered.
    """

    target: str
    fusion: bool = True
    any_schedule: bool = False

    def __str__(self) -> str:
        return self.target + (UNFUSED if not self.fusion else "") + (ANY_SCHEDULE if self.any_schedule else "")

    @staticmethod
    def parse(text: str) -> Way:
        """The way that is written so."""
        target = text.removesuffix(ANY_SCHEDULE).removesuffix(UNFUSED)
        return Way(target, UNFUSED not in text, text.endswith(ANY_SCHEDULE))


class Case(NamedTuple):
    """A graph with the symbols and the seed of the arrays that it is called with, and the ways it is compiled."""

    graph: Graph
    symbols: dict[str, int]
    seed: int
    ways: tuple[Way, ...]

    def __repr__(self) -> str:
        return f"Case(seed={self.seed}, symbols={self.symbols}, ways={self.ways}, graph={self.graph.to_json()})"


class Composer:
    """Draws, and adds to the builder `b`.

    `points` is how many elements the largest value of the graph may have, the product of a contraction included, which
    is never in memory but in the reference's.
    """

    def __init__(self, draw: DrawFn, points: int) -> None:
        self.draw = draw
        self.points = points
        self.b = Builder("fuzz")
        self.symbolic = draw(st.sampled_from([False, False, True]))
        self.parameters = draw(st.booleans())
        self.symbols: dict[str, int] = {}

    def pick(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def flag(self) -> bool:
        return self.draw(st.booleans())

    def value(self, dim: Dim) -> int:
        """What a dim is in the call."""
        return evaluate(dim, self.symbols)

    def values(self, dims: Sequence[Dim]) -> tuple[int, ...]:
        return tuple(self.value(dim) for dim in dims)

    def count(self, x: Tensor) -> int:
        """The elements of a tensor in the call."""
        return self.value(product(x.shape))

    def dim(self, sizes: Sequence[int], most: int) -> Dim:
        """One of the sizes that are at most `most`, in a symbolic graph perhaps as what a symbol makes in this call."""
        size = self.pick([size for size in sizes if size <= most] or [1])
        if not self.symbolic or len(self.symbols) == 3 or not self.flag():
            return size
        name = "nmk"[len(self.symbols)]
        low = self.pick([1, 0, size])
        high = self.pick([size, size + 3, 1024, *[1 << 14, 1 << 20][: 2 - len(self.symbols)]])
        if size and not self.integer(0, 3):
            return self._strided(name, size, high)
        self.symbols[name] = size
        return self.b.symbol(name, low, max(low, high))

    def _strided(self, name: str, size: int, high: int) -> Dim:
        """As many as windows of two steps find, by a division that truncates or one that rounds down."""
        self.symbols[name] = 2 * size - 1
        symbol = self.b.symbol(name, 1, 2 * high)
        divide = self.pick([idiv, floordiv])
        return add(divide(sub(symbol, 1), 2), 1)

    def input(self, dtype: DType, shape: Sequence[Dim]) -> Tensor:
        """An input, in a graph with parameters perhaps one."""
        declare = self.b.parameter if self.parameters and self.flag() else self.b.input
        return declare(dtype, tuple(shape))

    def case(self, outputs: Sequence[Tensor], seed: int, ways: Sequence[Way]) -> Case:
        """The whole, validated."""
        self.b.output(*outputs)
        return Case(self.b.graph(), dict(self.symbols), seed, tuple(ways))
