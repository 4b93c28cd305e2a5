"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """`WARN`: a problem that affects some uses; `FAIL`: a problem that keeps programs from running."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """`part` is the part that was checked, `found` the result, and `advice` the remedy."""

    part: str
    status: Status
    found: str
    advice: str = ""


def ok(part: str, found: str) -> Finding:
    """A finding without a problem."""
    return Finding(part, Status.OK, found)


def warn(part: str, found: str, advice: str) -> Finding:
    """A finding of a problem that affects some uses."""
    return Finding(part, Status.WARN, found, advice)


def fail(part: str, found: str, advice: str) -> Finding:
    """A finding of a problem that keeps programs from running."""
    return Finding(part, Status.FAIL, found, advice)
