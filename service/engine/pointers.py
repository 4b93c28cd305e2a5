"""An error about the canonical graph, told about the user's."""

from __future__ import annotations

import re
from typing import Final

from tensorkiln.errors import TensorkilnError

from .returned import nodes_of

# No graph has a node of more digits: what has is no node, and too long for `int`.
_NODE: Final = re.compile(r"/nodes/([0-9]{1,9})(?!\w)")


def in_user_terms(error: TensorkilnError, renaming: bytes) -> TensorkilnError:
    """The same error with the user's node indices in its pointers and wherever its message names a node so.

    CrashedError when the renaming is none.
    """
    nodes = nodes_of(renaming)

    def rename(text: str) -> str:
        return _NODE.sub(lambda match: f"/nodes/{_at(nodes, int(match[1]))}", text)

    return type(error)(
        rename(error.message), pointers=[rename(pointer) for pointer in error.pointers], details=error.details
    )


def _at(nodes: list[int], canonical: int) -> int:
    return nodes[canonical] if canonical < len(nodes) else canonical
