"""What a look at one part has found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """`WARN` is something that will be missed sooner or later; `FAIL` something without which programs do not run."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """`part` is what was looked at, `found` what is there, and `advice` what to do about it."""

    part: str
    status: Status
    found: str
    advice: str = ""


def ok(part: str, found: str) -> Finding:
    """All is well."""
    return Finding(part, Status.OK, found)


def warn(part: str, found: str, advice: str) -> Finding:
    """Something is missing that not everybody needs."""
    return Finding(part, Status.WARN, found, advice)


def fail(part: str, found: str, advice: str) -> Finding:
    """Something has to be done."""
    return Finding(part, Status.FAIL, found, advice)
