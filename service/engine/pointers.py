"""Translates errors about the canonical graph into errors about the user's graph."""

from __future__ import annotations

from service.wire.places import NODE, in_terms_of_source
from tensorkiln.errors import TensorkilnError

from .task_answers import nodes_of


def in_user_terms(error: TensorkilnError, renaming: bytes) -> TensorkilnError:
    """The same error with the user's node indices in its pointers and its message.

    For a graph made from a module or a text, with the places there instead. CrashedError when `renaming` is invalid.
    """
    known = nodes_of(renaming)
    if known.places:
        about_nodes = any(NODE.match(pointer) for pointer in error.pointers)
        told = in_terms_of_source(error, known.places, known.field)
        return told if about_nodes else type(error)(told.message, pointers=error.pointers, details=error.details)

    def rename(text: str) -> str:
        return NODE.sub(lambda match: f"/nodes/{_at(known.nodes, int(match[1]))}", text)

    pointers = [rename(pointer) for pointer in error.pointers]
    return type(error)(rename(error.message), pointers=pointers, details=error.details)


def _at(nodes: list[int], canonical: int) -> int:
    return nodes[canonical] if canonical < len(nodes) else canonical
