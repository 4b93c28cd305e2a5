"""The body of a request, which is parsed only in the sandbox; its limits, and errors in terms of its source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tensorkiln.errors import TensorkilnError

MAX_TARGETS = 16
"""Targets that one request may name."""
MAX_BATCH = 256
"""Compile requests in one batch."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body and its SHA-256."""

    content: bytes
    digest: str


NODE: Final = re.compile(r"/nodes/([0-9]{1,9})(?!\w)")
"""A node in a pointer. Longer numbers are not nodes of any graph, and may be too long for `int`."""
_WHOLE: Final = {"stablehlo": "the module", "builder": "the text"}


def in_terms_of_source(error: TensorkilnError, places: Sequence[str], field: str) -> TensorkilnError:
    """The same error with the operation of a module, or the place in a text, instead of each node.

    `places` has the places of the nodes, `field` is the field of the request with the source.
    """

    def place(match: re.Match[str]) -> str:
        node = int(match[1])
        return places[node] if node < len(places) and places[node] else _WHOLE[field]

    named = [place(match) for pointer in error.pointers if (match := NODE.match(pointer)) is not None]
    message = NODE.sub(place, error.message)
    shown = f"{named[0]}: {message}" if named else message
    return type(error)(shown, pointers=[f"/{field}"], details=error.details)
