"""Graphs that are drawn for a GPU: every kind of node on every dtype, and compositions. Runs where the compiler is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from tensorkiln import reference
from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph
from tensorkiln.reference.precision import Array
from tests.fuzz.bounds import evaluate_bounded
from tests.fuzz.families import graphs
from tests.fuzz.losses import steps
from tests.fuzz.values import arrays_for
from tests.numerics.cases import Tolerance, graph_for
from tests.numerics.cases.kinds import KINDS_AND_DTYPES

FAMILIES = ("behind_products", "many_outputs", "moved_then_reduced", "in_place", "blocks", "long_chains")
MOST_BYTES = 1 << 18
"""Of the arrays of a drawn case: what is carried to a GPU travels with all of them."""

T = TypeVar("T")


@dataclass(frozen=True)
class Drawn:
    """A graph and one call of it, with what it must give and how far each element may be from that."""

    name: str
    graph: Graph
    symbols: dict[str, int]
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    bounds: tuple[Array, ...]

    @property
    def size(self) -> int:
        """Bytes of its inputs and outputs."""
        return sum(array.nbytes for array in (*self.inputs, *self.outputs))


def drawn(count: int, number: int) -> Iterator[Drawn]:
    """Every kind on every dtype, then `count` compositions, all drawn from `number`."""
    for kind, dtype in KINDS_AND_DTYPES:
        yield _kind(kind, dtype, number)
    found, turn = 0, 0
    while found < count:
        case = _composition(FAMILIES[turn % len(FAMILIES)], number + turn)
        turn += 1
        if case.size <= MOST_BYTES:
            found += 1
            yield case


def _kind(kind: str, dtype: DType, number: int) -> Drawn:
    case = _second(graph_for(kind, dtype, symbolic=bool(number % 2)), number)
    outputs = reference.evaluate(case.graph, *case.arrays, **case.symbols)
    bounds = tuple(_allowed(case.tolerance, output) for output in outputs)
    return Drawn(f"{kind}-{dtype.value}-{number}", case.graph, case.symbols, case.arrays, outputs, bounds)


def _allowed(tolerance: Tolerance, output: Array) -> Array:
    with np.errstate(invalid="ignore"):
        apart = steps(DType.from_numpy(output.dtype), output, tolerance.ulps)
    return np.maximum(apart, tolerance.absolute)


def _composition(family: str, number: int) -> Drawn:
    case = _second(graphs(family), number)
    inputs = arrays_for(case.graph, case.symbols, case.seed)
    expected = evaluate_bounded(case.graph, inputs, case.symbols)
    outputs, bounds = (tuple(part) for part in zip(*expected, strict=True))
    return Drawn(f"{family}-{number}", case.graph, case.symbols, inputs, outputs, bounds)


def _second(strategy: SearchStrategy[T], number: int) -> T:
    """What is drawn second, or the only one: the first is always the simplest."""
    found: list[T] = []

    @seed(number)
    @settings(
        max_examples=2,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(Phase.generate,),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(strategy)
    def keep(value: T) -> None:
        found.append(value)

    keep()
    return found[-1]
