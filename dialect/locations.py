"""Locations: every op of a graph has the JSON Pointer of its node, so that a diagnostic names the user's node."""

from __future__ import annotations

import re

from .mlir import ir

_POINTER = re.compile(r'"(/nodes/(\d+))"')


def node_pointer(index: int) -> str:
    """The JSON Pointer of a node."""
    return f"/nodes/{index}"


def node_at(pointer: str) -> int:
    """The index of the node that a JSON Pointer names."""
    return int(pointer.rpartition("/")[2])


def node_location(index: int) -> ir.Location:
    """The location of a node's ops, in the current context."""
    return ir.Location.name(node_pointer(index))


def node_indices(location: ir.Location) -> tuple[int, ...]:
    """The nodes in a location, several for a fused one, in order and each once."""
    return tuple(dict.fromkeys(int(index) for _, index in _POINTER.findall(str(location))))


def node_pointers(location: ir.Location) -> tuple[str, ...]:
    """The JSON Pointers of `node_indices`."""
    return tuple(node_pointer(index) for index in node_indices(location))
