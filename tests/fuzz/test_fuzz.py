"""Composed graphs compute what the reference does, on every target, with fusion and without.

Some of them, which are the same each time; `make fuzz` composes others.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .composer import Case
from .coverage import Coverage
from .exploration import Judge, explore
from .families import FAMILIES
from .trial import Trials, written
from .verdict import Verdict

BATCH = 8
BATCHES = {
    "behind_products": 10,
    "blocks": 1,
    "images": 1,
    "repeated": 1,
    "moved_then_reduced": 2,
    "in_place": 2,
    "many_outputs": 2,
    "long_chains": 1,
}
"""Batches of a family: one process composes one."""


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """Judges each case once: every batch of a family begins with the same, the simplest."""
    known: dict[str, Verdict] = {}

    def of(case: Case) -> Verdict:
        text = written(case)
        if text not in known:
            known[text] = trials.of(case)
        return known[text]

    with Trials() as trials:
        yield of


def test_every_family_is_composed_and_products_as_often_as_finds_what_was_wrong() -> None:
    assert BATCHES.keys() == FAMILIES.keys()
    assert BATCH * BATCHES["behind_products"] > 75, "docs/long-epilogues.md says within how many graphs it is found"


# To make a graph that fails as simple as it gets takes minutes.
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("family", "number"), [(name, n) for name, batches in BATCHES.items() for n in range(batches)])
def test_composed_graphs_compute_what_the_reference_does(family: str, number: int, judge: Judge) -> None:
    coverage = Coverage()
    explore(family, BATCH, number, judge, coverage)
    assert coverage.graphs["all"] == BATCH
    assert coverage.ways.total() >= BATCH // 2
