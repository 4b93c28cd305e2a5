"""What the Prefer header asks for."""

from __future__ import annotations

import pytest

from service.routes.compile import MAX_WAIT_S, Preference, parse_prefer


@pytest.mark.parametrize(
    ("headers", "wait_s", "applied"),
    [
        (["respond-async"], 0, "respond-async"),
        (["Respond-Async"], 0, "respond-async"),
        (["wait=5"], 5, "wait=5"),
        (["wait = 5"], 5, "wait=5"),
        (['wait="5"'], 5, "wait=5"),
        (["wait=0"], 0, "wait=0"),
        (["respond-async, wait=10"], 10, "respond-async, wait=10"),
        (["respond-async", "wait=10"], 10, "respond-async, wait=10"),
        (["wait=10;x=y, respond-async; a"], 10, "respond-async, wait=10"),
        (["wait=3, wait=9"], 3, "wait=3"),
        (["return=minimal, wait=3"], 3, "wait=3"),
        (["wait=999999"], MAX_WAIT_S, f"wait={MAX_WAIT_S}"),
        (["wait=99999999999"], MAX_WAIT_S, f"wait={MAX_WAIT_S}"),
        (["wait=" + "9" * 5000], MAX_WAIT_S, f"wait={MAX_WAIT_S}"),
        (["wait=" + "0" * 5000 + "7"], 7, "wait=7"),
        (["wait=soon, respond-async"], 0, "respond-async"),
        (['foo="x, wait=9, y", wait=3'], 3, "wait=3"),
        (['foo="a\\", wait=9", wait=3'], 3, "wait=3"),
        (['wait=3; by="x, wait=9"'], 3, "wait=3"),
    ],
)
def test_a_preference_is_understood(headers: list[str], wait_s: int, applied: str) -> None:
    assert parse_prefer(headers) == Preference(wait_s, applied)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [""],
        ["return=minimal"],
        ["wait"],
        ["wait=-1"],
        ["wait=1.5"],
        ["wait=soon"],
        ["wait=\u0665"],
        ["=="],
        ['foo="x, respond-async, y"'],
        ['foo="x, respond-async'],
    ],
)
def test_unknown_preferences_change_nothing(headers: list[str]) -> None:
    assert parse_prefer(headers) is None


@pytest.mark.parametrize(
    "header",
    ["a=" + " " * (1 << 20) + '"', 'a="\\"' + '\\"' * (1 << 19), '"' * (1 << 20), f"wait={'0' * (1 << 20)}s"],
    ids=["spaces", "escapes", "quotes", "digits"],
)
def test_a_header_of_a_megabyte_is_as_soon_ignored(header: str) -> None:
    assert parse_prefer([header]) is None
