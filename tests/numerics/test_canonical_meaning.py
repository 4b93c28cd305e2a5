"""A graph and its canonical form compute the same from the same arrays."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tensorkiln import reference
from tensorkiln.canonical import canonicalize
from tests.numerics.cases import CHAINS, KINDS, Case, chain_for, compare, dtypes_of, graph_for

SMALL = settings(
    max_examples=8, deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def _check(case: Case) -> None:
    canonical = canonicalize(case.graph)
    symbols = {name: case.symbols[users] for name, users in canonical.symbols.items()}
    compare(
        reference.evaluate(canonical.graph, *case.arrays, **symbols),
        reference.evaluate(case.graph, *case.arrays, **case.symbols),
    )


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_keeps_its_meaning(kind: str, symbolic: bool) -> None:
    @SMALL
    @given(graph_for(kind, dtypes_of(kind)[0], symbolic))
    def run(case: Case) -> None:
        _check(case)

    run()


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("name", CHAINS)
def test_each_network_keeps_its_meaning(name: str, symbolic: bool) -> None:
    @SMALL
    @given(chain_for(name, CHAINS[name].dtypes[0], symbolic))
    def run(case: Case) -> None:
        _check(case)

    run()
