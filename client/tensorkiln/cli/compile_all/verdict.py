"""The verdict on a run: its exit code and the violated policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...errors import NotFoundError, TensorkilnError
from ..report import INTERRUPTED, REFUSED, UNAVAILABLE, UNTRUSTED, USAGE, exit_code
from .result import Result

POLICY: Final = 4

# The worst first: untrusted programs, then errors that are independent of the graphs.
_ORDER: Final = (UNTRUSTED, UNAVAILABLE, REFUSED, USAGE)


class FailOn(StrEnum):
    """Conditions under which a run fails although everything was compiled."""

    ERROR = "error"
    WARNING = "warning"
    CACHE_MISS = "cache-miss"
    SIZE_REGRESSION = "size-regression"


@dataclass(frozen=True, slots=True)
class Check:
    """A comparison with the lock file.

    `gone` are locked graphs that no longer exist. `options` are the options that differ from the lock's: with any, no
    program can be compared.
    """

    gone: tuple[str, ...]
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The exit code; `violations` are the violated policies."""

    code: int
    violations: tuple[str, ...]


def judge(
    results: Sequence[Result],
    fail_on: Sequence[FailOn],
    *,
    check: Check | None,
    ended_by: KeyboardInterrupt | TensorkilnError | None,
) -> Verdict:
    """The verdict on a run; `ended_by` is the interrupt or error that ended it early, if any."""
    violations = (*_violations(results, fail_on), *(_differences(results, check) if check is not None else ()))
    if ended_by is not None:
        return Verdict(exit_code(ended_by) if isinstance(ended_by, TensorkilnError) else INTERRUPTED, violations)
    codes = {_code(each.error) for each in results if each.error is not None}
    codes |= {UNTRUSTED for each in results if each.is_unfaithful}
    worst = next((code for code in _ORDER if code in codes), REFUSED if codes else None)
    return Verdict(worst if worst is not None else POLICY if violations else 0, violations)


def _code(error: TensorkilnError) -> int:
    # Offline, a program that is not cached counts as a graph that was not compiled.
    return REFUSED if isinstance(error, NotFoundError) else exit_code(error)


def _violations(results: Sequence[Result], fail_on: Sequence[FailOn]) -> Iterator[str]:
    for each in results:
        where = f"{each.file.name} for {each.target}"
        if FailOn.CACHE_MISS in fail_on and each.cache is not None and each.cache.status == "miss":
            yield f"{where} was not in the cache: {each.cache.reason}"
        if FailOn.SIZE_REGRESSION in fail_on and each.growth is not None and each.growth > 0:
            yield f"{where} has grown by {each.growth} bytes"
        if FailOn.WARNING in fail_on:
            yield from (f"{where}: {warning}" for warning in each.warnings())


def _differences(results: Sequence[Result], check: Check) -> Iterator[str]:
    """The differences from the lock file."""
    if check.options:
        yield f"the lock file was made with other options: {', '.join(check.options)}"
        return
    for each in results:
        where = f"{each.file.name} for {each.target}"
        if each.made is not None and each.locked is None:
            yield f"{where} is not locked"
        if each.made is not None and each.locked is not None and each.made.digest != each.locked.digest:
            yield f"{where} is locked as {each.locked.digest[:12]} and would be {each.made.digest[:12]}"
    yield from (f"{graph} is locked and gone from the folder" for graph in check.gone)
