"""The Prefer header (RFC 7240), as far as the service knows it: `respond-async` and `wait`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MAX_WAIT_S: Final = 600
"""Seconds that an answer is held back at most, whatever is preferred, and however long the time-outs are."""

# Nothing that was matched is given back: what is not understood costs no more than what is.
_ELEMENT: Final = re.compile(r'(?:[^,"]++|"(?:[^"\\]++|\\.)*+"?)++')
_ENTRY: Final = re.compile(r"""([\w!#$%&'*+.^`|~-]++)\s*+(?:=\s*+(?:"([^"]*+)"|([^\s;,"]*+))\s*+)?(?:;.*)?""")
# A number with more of them is above every maximum, and would take long to read.
_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class Preference:
    """How long a client waits for its answer before it takes a job instead; `applied` is what is done of its wishes."""

    wait_s: int
    applied: str


def parse_prefer(headers: Sequence[str], most_s: int = MAX_WAIT_S) -> Preference | None:
    """What the Prefer headers of a request ask for; None when they leave the answer as it is.

    `respond-async` alone waits for nothing, `wait=N` waits N seconds, up to `most_s` and MAX_WAIT_S. Of a preference
    that is stated twice the first counts, and one that is not understood is ignored, as the RFC has it.
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
