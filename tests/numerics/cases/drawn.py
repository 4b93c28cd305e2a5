"""Few cases of many, each of which is worth its compile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from zlib import crc32

import pytest
from hypothesis import given, seed, settings, strategies
from hypothesis.strategies import SearchStrategy

from .sketch import Case


def parametrize(
    names: tuple[str, ...], parameters: Iterable[tuple[object, ...]], *, drawn: int | None = None
) -> pytest.MarkDecorator:
    """As pytest's, but one process does all tests of the same parameters: what is drawn for them is drawn once.

    Where it is the first `drawn` of them alone that say what is drawn, those are meant.
    """
    grouped = [
        pytest.param(*values, marks=pytest.mark.xdist_group(f"drawn {' '.join(map(str, values[:drawn]))}"))
        for values in parameters
    ]
    return pytest.mark.parametrize(names, grouped, ids=lambda value: str(value) or "-")


def for_each_of(count: int, cases: SearchStrategy[Case], check: Callable[[Case], None]) -> None:
    """`check` so many of the cases that hypothesis draws.

    The first that it draws would be the simplest, of one element, which says little: that one is left out. Where every
    run draws the same, a strategy that is given again is not drawn from again.
    """
    if not settings().derandomize:
        _draw(count, cases, check)
        return
    has_passed = False
    try:
        for case in _drawn(count, cases):
            # A check may write to its arrays: the next has its own.
            check(case._replace(arrays=tuple(array.copy("K") for array in case.arrays), symbols=dict(case.symbols)))
        has_passed = True
    finally:
        if not has_passed:
            # Hypothesis draws the same, meets the same failure, and looks for the simplest case that has it.
            _draw(count, cases, check)


@lru_cache(maxsize=8)
def _drawn(count: int, cases: SearchStrategy[Case]) -> tuple[Case, ...]:
    found: list[Case] = []
    _draw(count, cases, found.append)
    return tuple(found)


def _draw(count: int, cases: SearchStrategy[Case], check: Callable[[Case], None]) -> None:
    # Hypothesis begins with the simplest of all: that is no case, and takes no time.
    @settings(max_examples=count + 1)
    @given(strategies.none() | cases)
    def checks(case: Case | None) -> None:
        if case is not None:
            check(case)

    # By default the seed is a digest of this function, the same for all strategies: they would draw the same shapes.
    (seed(crc32(repr(cases).encode()))(checks) if settings().derandomize else checks)()
