"""An error about the canonical graph, told about the user's."""

from __future__ import annotations

import re
from typing import Final

from tensorkiln.errors import TensorkilnError

from .task_answers import nodes_of

_MODULE: Final = "the module"
# No graph has a node of more digits: what has is no node, and too long for `int`.
_NODE: Final = re.compile(r"/nodes/([0-9]{1,9})(?!\w)")


def in_user_terms(error: TensorkilnError, renaming: bytes) -> TensorkilnError:
    """The same error with the user's node indices in its pointers and wherever its message names a node so.

    What was translated from a module has the operations of that instead.

    CrashedError when the renaming is none.
    """
    known = nodes_of(renaming)
    if known.places:
        return _about_module(error, known.places)

    def rename(text: str) -> str:
        return _NODE.sub(lambda match: f"/nodes/{_at(known.nodes, int(match[1]))}", text)

    return type(error)(
        rename(error.message), pointers=[rename(pointer) for pointer in error.pointers], details=error.details
    )


def _about_module(error: TensorkilnError, places: list[str]) -> TensorkilnError:
    """The same error about a module: an operation of it, with its location, instead of a node."""

    def said(match: re.Match[str]) -> str:
        node = int(match[1])
        return places[node] if node < len(places) and places[node] else _MODULE

    named = [said(match) for pointer in error.pointers if (match := _NODE.match(pointer)) is not None]
    message = _NODE.sub(said, error.message)
    shown = f"{named[0]}: {message}" if named else message
    return type(error)(shown, pointers=["/stablehlo"] if named else error.pointers, details=error.details)


def _at(nodes: list[int], canonical: int) -> int:
    return nodes[canonical] if canonical < len(nodes) else canonical
