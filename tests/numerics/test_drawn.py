"""What is drawn for the tests of kinds."""

from __future__ import annotations

import pytest
from hypothesis import strategies

from tensorkiln.dtypes import DType

from .cases import Case, graph_for
from .cases.drawn import for_each_of


def test_the_simplest_case_is_left_out() -> None:
    seen: list[Case] = []
    for_each_of(3, graph_for("binop", DType.INT32, symbolic=True, op="add"), seen.append)
    assert len(seen) == 3
    assert all(case.arrays[0].shape != (1,) for case in seen)


def test_the_only_case_is_checked() -> None:
    cases: list[Case] = []
    for_each_of(1, graph_for("binop", DType.INT32, symbolic=True, op="add"), cases.append)
    seen: list[Case] = []
    for_each_of(3, strategies.just(cases[0]), seen.append)
    assert len(seen) == 1


def test_a_case_that_fails_is_told() -> None:
    def refuse(case: Case) -> None:
        raise ValueError(case.symbols)

    with pytest.raises(ValueError, match="n"):
        for_each_of(1, graph_for("binop", DType.INT32, symbolic=True, op="add"), refuse)


def test_checks_share_no_memory() -> None:
    def spoil(case: Case) -> None:
        for array in case.arrays:
            array.fill(0)

    cases = graph_for("binop", DType.INT32, symbolic=True, op="add")
    before: list[Case] = []
    after: list[Case] = []
    for check in (before.append, spoil, after.append):
        for_each_of(2, cases, check)
    assert repr(before) == repr(after)
    assert all(array.any() for case in after for array in case.arrays)


def test_a_case_that_fails_is_made_simpler() -> None:
    refused: list[int] = []

    def refuse(case: Case) -> None:
        refused.append(sum(array.size for array in case.arrays))
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        for_each_of(1, graph_for("binop", DType.INT32, symbolic=True, op="add"), refuse)
    assert min(refused[1:]) < refused[0]
