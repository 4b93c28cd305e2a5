"""A graph in its one canonical form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import msgspec

from ..dtypes import DType
from ..expr import Dim, Expr, substitute, symbol, to_wire
from ..graph import Graph, VarMetadata
from ..infer import Inference, innermost
from ..infer.devices import home
from ..nodes import (
    AnyNode,
    Buffer,
    ConstScalar,
    Copy,
    Custom,
    DefineVar,
    Kernel,
    SymVar,
    Vconst,
    out_vars,
)
from ..nodes.base import Record
from ..types import TensorType, canonical_device
from .conditions import lost_conditions
from .order import dependencies, reached
from .rename import dims_of, rename_dims, rename_node, symbolic_fields
from .symbols import canonical_names


@dataclass(frozen=True, slots=True)
class Canonical:
    """A canonical graph and the way back to the user's names.

    `vars`: the user's var of each canonical var. `symbols`: the user's name of each canonical symbol. `nodes`: the
    user's index of each canonical node.
    """

    graph: Graph
    vars: dict[int, int]
    symbols: dict[str, str]
    nodes: tuple[int, ...]


def graph_digest(canonical: Canonical) -> str:
    """SHA-256, in hexadecimal, of the canonical graph's JSON."""
    return sha256(graph_json(canonical)).hexdigest()


def graph_json(canonical: Canonical) -> bytes:
    """What `graph.to_json()` gives, in less time: metadata that is alike is one object here, and is written once."""
    graph = canonical.graph
    texts: dict[int, str] = {}
    entries: list[str] = []
    for var, stated in graph.vars_metadata.items():
        text = texts.get(id(stated)) or texts.setdefault(id(stated), stated.model_dump_json())
        entries.append(f'"{var}":{text}')
    nodes = msgspec.json.encode([_encodable(node) for node in graph.nodes], enc_hook=_inside)
    before = graph.model_dump_json(by_alias=True, include=_BEFORE_NODES)
    after = graph.model_dump_json(by_alias=True, exclude=_NOT_AFTER_METADATA)
    metadata = ",".join(entries)
    return b'%b,"nodes":%b,"vars_metadata":{%b},%b' % (
        before[:-1].encode(),
        nodes,
        metadata.encode(),
        after[1:].encode(),
    )


def _encodable(node: AnyNode) -> object:
    """A node for msgspec, which spells some floats in another way than pydantic does."""
    return msgspec.Raw(node.model_dump_json().encode()) if type(node) in _WITH_FLOATS else node.__dict__


def _inside(value: Record | Expr) -> object:
    return value.__dict__ if isinstance(value, Record) else to_wire(value)


_WITH_FLOATS: Final = frozenset({ConstScalar, Vconst, Custom, Kernel})
_BEFORE_NODES: Final = {"schema_version", "name"}
_NOT_AFTER_METADATA: Final = {*_BEFORE_NODES, "nodes", "vars_metadata"}


def canonicalize(graph: Graph) -> Canonical:
    """The form that all graphs share which differ in names, in the order of nodes or symbols, or in dead nodes.

    Gone are dead nodes, sinks, declarations of destinations and repeated placeholders. An assign stays where its target
    or its result can be observed, and a dead node stays where without it a condition on the call would be lost. Every
    var has one definition: vars are 0, 1, … and symbols s0, s1, … in canonical order, with the bounds that binds leave
    them. Inputs and outputs keep their order.
    """
    found = dependencies(graph)
    canonical = _in_order(graph, reached(graph, found, ()))
    kept = lost_conditions(graph, found, canonical.graph, canonical.symbols)
    return _in_order(graph, reached(graph, found, kept)) if kept else canonical


def _in_order(graph: Graph, order: list[int]) -> Canonical:
    """The graph of the user's nodes `order`, in canonical names."""
    nodes = [graph.nodes[index] for index in order]
    names = canonical_names(_dims(graph, nodes), graph.symbols)
    sym_vars = {
        name: SymVar(name=names[name], min_val=low, max_val=high) for name, (low, high) in graph.symbols.items()
    }
    rename = _renamer(names)
    device = _device_names(graph, nodes)
    stated = _Metadata(graph, rename, device)

    reads: dict[int, int] = {}
    user_vars: dict[int, int] = {}
    metadata: dict[int, VarMetadata] = {}
    renamed: list[AnyNode] = []

    def place(name: str) -> str:
        return device(name) or "CPU"

    for node in nodes:
        writes: dict[int, int] = {}
        for var in out_vars(node):
            number = len(user_vars)
            writes[var], user_vars[number] = number, var
            reads.setdefault(var, number)
            metadata[number] = stated.of(var)
        renamed.append(rename_node(node, reads, writes, rename, sym_vars, place))
    fields: dict[str, Any] = {
        "schema_version": 1,
        "name": "",
        "nodes": tuple(renamed),
        "vars_metadata": metadata,
        "input_vars": tuple(reads[var] for var in graph.input_vars),
        "output_vars": tuple(reads[var] for var in graph.output_vars),
        "symbolic_vars": tuple(sorted(sym_vars.values(), key=lambda sym_var: int(sym_var.name[1:]))),
    }
    inference = _inference(graph, user_vars)
    # Renaming makes nothing invalid.
    canonical = Graph.model_validate(fields) if inference is None else Graph.of_valid(fields, {"_inference": inference})
    return Canonical(canonical, user_vars, {names[name]: name for name in names}, tuple(order))


def _inference(graph: Graph, user_vars: Mapping[int, int]) -> Inference | None:
    """What inference finds out about the canonical graph, where other names cannot change it.

    That is where nothing has a symbol, so that there are no conditions either, and no device.
    """
    types = graph.types
    if graph.symbols or any(found.device is not None for found in types.values()):
        return None
    return Inference({number: types[var] for number, var in user_vars.items()}, (), {})


def _dims(graph: Graph, nodes: list[AnyNode]) -> list[Dim]:
    """The distinct symbolic dims of the nodes and of what the metadata states about them, by first use."""
    if not graph.symbols:
        return []
    found: dict[Dim, None] = {}
    types = graph.types
    for node in nodes:
        inner = innermost(node)
        if isinstance(inner, DefineVar):
            found.setdefault(symbol(inner.sym_var.name))
        for value in symbolic_fields(node):
            found.update(dict.fromkeys(dims_of(value)))
        for var in out_vars(node):
            found.update(dict.fromkeys(dims_of(_stated_shape(types, graph, var))))
    return list(found)


def _stated_shape(types: Mapping[int, TensorType], graph: Graph, var: int) -> tuple[Dim, ...]:
    """The shape that the metadata states: it repeats the inferred one, or is a condition on the call."""
    stated = graph.vars_metadata.get(var)
    return types[var].shape if stated is None else stated.shape


def _renamer(names: Mapping[str, str]) -> Callable[[Dim], Dim] | None:
    """Replaces symbols in a dim, each distinct dim once; None where there are no symbols."""
    if not names:
        return None
    symbols: dict[str, Dim] = {name: symbol(canonical) for name, canonical in names.items()}
    known: dict[Dim, Dim] = {}

    def rename(dim: Dim) -> Dim:
        if dim not in known:
            known[dim] = substitute(dim, symbols)
        return known[dim]

    return rename


class _Metadata:
    """The metadata of canonical vars, one object for all that are alike."""

    def __init__(self, graph: Graph, rename: Callable[[Dim], Dim] | None, device: Callable[[str], str | None]) -> None:
        self._graph, self._types = graph, graph.types
        self._rename, self._device = rename, device
        self._known: dict[tuple[DType, tuple[Dim, ...], str | None], VarMetadata] = {}

    def of(self, var: int) -> VarMetadata:
        """The inferred dtype and device of the user's `var`, and the stated shape."""
        inferred, shape = self._types[var], _stated_shape(self._types, self._graph, var)
        key = (inferred.dtype, shape, inferred.device)
        found = self._known.get(key)
        if found is None:
            shape = shape if self._rename is None else rename_dims(shape, self._rename)
            place = None if inferred.device is None else self._device(inferred.device)
            found = self._known[key] = VarMetadata.model_construct(dtype=inferred.dtype, shape=shape, device=place)
        return found


def _device_names(graph: Graph, nodes: list[AnyNode]) -> Callable[[str], str | None]:
    """Device names as the canonical graph has them.

    Where everything is at home it does not matter what home is called: it is CPU where a node must name it, and nothing
    in the metadata if no node names one.
    """
    at_home = home(graph)
    if at_home is None:
        return canonical_device
    types = graph.types
    places = {types[var].device for node in nodes for var in out_vars(node)} - {None}
    if places != {at_home}:
        return canonical_device
    named = "CPU" if any(isinstance(innermost(node), Buffer | Copy) for node in nodes) else None
    return lambda name: named if canonical_device(name) == at_home else canonical_device(name)
