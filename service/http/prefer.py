"""The Prefer header (RFC 7240), as far as the service supports it: `respond-async` and `wait`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MAX_WAIT_S: Final = 600
"""Most seconds that an answer is held back, whatever the client prefers and the time-outs allow."""

# Possessive quantifiers never backtrack: a malformed header costs no more than a valid one.
_ELEMENT: Final = re.compile(r'(?:[^,"]++|"(?:[^"\\]++|\\.)*+"?)++')
_ENTRY: Final = re.compile(r"""([\w!#$%&'*+.^`|~-]++)\s*+(?:=\s*+(?:"([^"]*+)"|([^\s;,"]*+))\s*+)?(?:;.*)?""")
# A number with more digits exceeds every maximum, and would be slow to parse.
_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class Preference:
    """How long a client waits for its answer before it takes a job instead; `applied` is for Preference-Applied."""

    wait_s: int
    applied: str


def parse_prefer(headers: Sequence[str], most_s: int = MAX_WAIT_S) -> Preference | None:
    """Parse the Prefer headers of a request; None when they have neither preference.

    `respond-async` alone waits 0 seconds, `wait=N` waits N seconds, up to `most_s` and MAX_WAIT_S. The first statement
    of a preference counts, and unknown ones are ignored (RFC 7240).
    """
    stated: dict[str, str] = {}
    for entry in _ELEMENT.findall(",".join(headers)):
        match = _ENTRY.fullmatch(entry.strip())
        if match is not None:
            stated.setdefault(match[1].lower(), match[2] or match[3] or "")
    wait = stated.get("wait", "")
    waits = wait.isascii() and wait.isdigit()
    if not waits and "respond-async" not in stated:
        return None
    seconds = min(int(wait.lstrip("0")[:_DIGITS] or 0), most_s, MAX_WAIT_S) if waits else 0
    applied = ["respond-async"] if "respond-async" in stated else []
    return Preference(seconds, ", ".join([*applied, f"wait={seconds}"] if waits else applied))
