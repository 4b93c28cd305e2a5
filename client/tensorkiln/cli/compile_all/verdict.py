"""What a run comes to: its exit code, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...errors import NotFoundError, TensorkilnError
from ..report import INTERRUPTED, REFUSED, UNAVAILABLE, UNTRUSTED, USAGE, exit_code
from .result import Result

POLICY: Final = 4

# The worst comes first: what cannot be trusted, then what says nothing about the graphs.
_ORDER: Final = (UNTRUSTED, UNAVAILABLE, REFUSED, USAGE)


class FailOn(StrEnum):
    """What a run in which everything was compiled may still fail for."""

    ERROR = "error"
    WARNING = "warning"
    CACHE_MISS = "cache-miss"
    SIZE_REGRESSION = "size-regression"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The exit code; `violations` are the policies that were not kept to."""

    code: int
    violations: tuple[str, ...]


def judge(
    results: Sequence[Result],
    fail_on: Sequence[FailOn],
    *,
    is_check: bool,
    is_stale: bool,
    ended_by: KeyboardInterrupt | TensorkilnError | None,
) -> Verdict:
    """The verdict on a run, which `ended_by` ended before its time.

    `is_stale`: the lock file has entries that nothing was asked for.
    """
    violations = tuple(_violations(results, fail_on, is_check, is_stale))
    if ended_by is not None:
        return Verdict(exit_code(ended_by) if isinstance(ended_by, TensorkilnError) else INTERRUPTED, violations)
    codes = {_code(each.error) for each in results if each.error is not None}
    codes |= {UNTRUSTED for each in results if each.is_unfaithful}
    worst = next((code for code in _ORDER if code in codes), REFUSED if codes else None)
    return Verdict(worst if worst is not None else POLICY if violations else 0, violations)


def _code(error: TensorkilnError) -> int:
    # What is not kept for one who is offline is a graph that was not compiled.
    return REFUSED if isinstance(error, NotFoundError) else exit_code(error)


def _violations(results: Sequence[Result], fail_on: Sequence[FailOn], is_check: bool, is_stale: bool) -> list[str]:
    found: list[str] = []
    for each in results:
        where = f"{each.file.name} for {each.target}"
        if FailOn.CACHE_MISS in fail_on and each.cache is not None and each.cache.status == "miss":
            found.append(f"{where} was not in the cache: {each.cache.reason}")
        if FailOn.SIZE_REGRESSION in fail_on and each.growth is not None and each.growth > 0:
            found.append(f"{where} has grown by {each.growth} bytes")
        if FailOn.WARNING in fail_on:
            found += [f"{where}: {warning}" for warning in each.warnings()]
        if is_check and each.made is not None and each.locked is None:
            found.append(f"{where} is not locked")
        if is_check and each.made is not None and each.locked is not None and each.made.digest != each.locked.digest:
            found.append(f"{where} is locked as {each.locked.digest[:12]} and would be {each.made.digest[:12]}")
    if is_check and is_stale:
        found.append("the lock file has graphs or targets that are not asked for")
    return found
