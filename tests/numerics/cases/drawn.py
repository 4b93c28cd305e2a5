"""Few cases of many, each of which is worth its compile."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

from .sketch import Case


def for_each_of(count: int, cases: SearchStrategy[Case], check: Callable[[Case], None]) -> None:
    """`check` so many of the cases that hypothesis draws.

    The first that it draws is always the simplest, of one element, which says little: that one is left out unless there
    is no other.
    """
    simplest: list[Case] = []
    others = 0

    @settings(max_examples=count + 1)
    @given(cases)
    def checks(case: Case) -> None:
        nonlocal others
        if simplest:
            others += 1
            check(case)
        else:
            simplest.append(case)

    checks()
    if not others:
        check(simplest[0])
