"""Inference of devices: values are on the graph's home device, or on the target of a `copy`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..errors import InvalidGraphError, UnsupportedGraphError
from ..nodes import AnyNode, Buffer, Copy, Multi, Placeholder, Sink, out_vars
from ..types import TensorType, canonical_device
from .definitions import innermost, innermost_kinds
from .stated import StatedGraph

_FREE: Final = (Multi, Sink)
"""Kinds whose operands may be on different devices."""


def place(graph: StatedGraph, types: Mapping[int, TensorType]) -> dict[int, TensorType]:
    """The types with their devices; unchanged for a graph that names no device.

    The device of inputs and buffers is the home of the graph; UnsupportedGraphError when they name two.
    InvalidGraphError when operands are on different devices, or a stated device is not the inferred one.
    """
    kinds = {type(node) for node in graph.nodes}
    named = not kinds.isdisjoint(_NAMING) or any(stated.device is not None for stated in graph.vars_metadata.values())
    return _place(graph, types) if named else dict(types)


_NAMING: Final = frozenset({Buffer, Copy})
_AT_HOME: Final = frozenset({Buffer, Placeholder})


def home(graph: StatedGraph) -> str | None:
    """The canonical name of the device of inputs and buffers; None when they name none."""
    found: dict[str, str] = {}
    copied: set[int | None] = set()
    if Copy in innermost_kinds(graph.nodes):
        copied = {node.out_var for node in graph.nodes if isinstance(innermost(node), Copy)}
    for index, node in enumerate(graph.nodes):
        if type(node) not in _AT_HOME:
            continue
        if isinstance(node, Buffer) and node.out_var not in copied:
            found.setdefault(canonical_device(node.device), f"/nodes/{index}/device")
        elif isinstance(node, Placeholder) and (name := _stated(graph, node.out_var)) is not None:
            found.setdefault(name, f"/vars_metadata/{node.out_var}/device")
    if len(found) > 1:
        message = (
            f"inputs and buffers live on {' and '.join(found)}: a graph has one home, from which copy leads elsewhere"
        )
        raise UnsupportedGraphError(message, pointers=list(found.values()))
    return next(iter(found), None)


def _stated(graph: StatedGraph, var: int) -> str | None:
    stated = graph.vars_metadata.get(var)
    return None if stated is None or stated.device is None else canonical_device(stated.device)


def _place(graph: StatedGraph, types: Mapping[int, TensorType]) -> dict[int, TensorType]:
    at_home = home(graph)
    devices: dict[int, str | None] = {}
    for index, node in enumerate(graph.nodes):
        device = _device(node, devices, at_home, index)
        for var in out_vars(node):
            stated = _stated(graph, var)
            if device is not None and stated is not None and stated != device:
                message = f"var {var} lives on {device}, vars_metadata says {stated}; a copy would take it there"
                raise InvalidGraphError(message, pointers=[f"/nodes/{index}", f"/vars_metadata/{var}/device"])
            devices[var] = device or stated
    return {var: TensorType(kind.dtype, kind.shape, devices[var]) for var, kind in types.items()}


def _device(node: AnyNode, devices: Mapping[int, str | None], at_home: str | None, index: int) -> str | None:
    """The device of a node's value; None if unknown, as for a constant."""
    inner = innermost(node)
    if isinstance(inner, Copy):
        return canonical_device(inner.target_device)
    if isinstance(inner, Buffer):
        return canonical_device(inner.device)
    if isinstance(inner, Placeholder):
        return at_home
    found = dict.fromkeys(devices[var] for var in node.operands if devices[var] is not None)
    if len(found) > 1 and not isinstance(inner, _FREE):
        message = f"the operands live on {' and '.join(map(str, found))}: copy one of them first"
        raise InvalidGraphError(message, pointers=[f"/nodes/{index}"])
    return next(iter(found), None)
