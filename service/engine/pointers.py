"""An error about the canonical graph, told about the user's."""

from __future__ import annotations

import re
from typing import Final

from tensorkiln.errors import TensorkilnError

from .task_answers import UserNodes, nodes_of

_WHOLE: Final = {"stablehlo": "the module", "builder": "the text"}
# No graph has a node of more digits: what has is no node, and too long for `int`.
_NODE: Final = re.compile(r"/nodes/([0-9]{1,9})(?!\w)")


def in_user_terms(error: TensorkilnError, renaming: bytes) -> TensorkilnError:
    """The same error with the user's node indices in its pointers and wherever its message names a node so.

    What was made from a module or a text has the places in that instead.

    CrashedError when the renaming is none.
    """
    known = nodes_of(renaming)
    if known.places:
        return _about_source(error, known)

    def rename(text: str) -> str:
        return _NODE.sub(lambda match: f"/nodes/{_at(known.nodes, int(match[1]))}", text)

    return type(error)(
        rename(error.message), pointers=[rename(pointer) for pointer in error.pointers], details=error.details
    )


def _about_source(error: TensorkilnError, known: UserNodes) -> TensorkilnError:
    """The same error about what was sent: an operation of a module or a place in a text, instead of a node."""
    places = known.places

    def said(match: re.Match[str]) -> str:
        node = int(match[1])
        return places[node] if node < len(places) and places[node] else _WHOLE[known.field]

    named = [said(match) for pointer in error.pointers if (match := _NODE.match(pointer)) is not None]
    message = _NODE.sub(said, error.message)
    shown = f"{named[0]}: {message}" if named else message
    return type(error)(shown, pointers=[f"/{known.field}"] if named else error.pointers, details=error.details)


def _at(nodes: list[int], canonical: int) -> int:
    return nodes[canonical] if canonical < len(nodes) else canonical
