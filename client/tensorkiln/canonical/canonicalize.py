"""Conversion of a graph to its canonical form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..dtypes import DType
from ..expr import Dim, substitute, symbol
from ..graph import Graph, VarMetadata
from ..infer import innermost
from ..infer.devices import home
from ..nodes import AnyNode, Buffer, Copy, Region, SymVar, While, out_vars
from ..nodes.base import record_of
from ..types import TensorType, canonical_device
from .conditions import lost_conditions
from .form import Canonical
from .order import Dependencies, dependencies, reached
from .rename import dims_of, rename_dims, renamed_fields, symbolic_fields
from .symbols import canonical_names


def canonicalize(graph: Graph) -> Canonical:
    """The canonical form, equal for graphs that differ only in names, order of nodes or symbols, or dead nodes.

    Dead nodes, sinks, declarations of destinations and repeated placeholders are removed. An assign stays where its
    target or its result can be observed; a dead node stays where removing it would lose a condition on the call. Every
    var has one definition. Vars are 0, 1, … and symbols s0, s1, … in canonical order, with the bounds that binds leave
    them. Inputs and outputs keep their order. Graphs inside loops are canonicalized separately, with the same symbols.
    """
    return _canonical(_with_canonical_regions(graph), names_symbols=True)


def _canonical(graph: Graph, *, names_symbols: bool) -> Canonical:
    found = dependencies(graph)
    canonical = _in_order(graph, found, reached(graph, found, ()), names_symbols)
    kept = lost_conditions(graph, found, canonical)
    return _in_order(graph, found, reached(graph, found, kept), names_symbols) if kept else canonical


def _with_canonical_regions(graph: Graph) -> Graph:
    """The graph with the regions of its loops in canonical form; symbols keep their names."""
    if not any(isinstance(node, While) for node in graph.nodes):
        return graph
    nodes = tuple(_with_canonical_region(node, graph) if isinstance(node, While) else node for node in graph.nodes)
    known = {name: getattr(graph, name) for name in Graph.model_fields}
    return record_of(Graph, {**known, "nodes": nodes}, private={"_inference": graph.inference})


def _with_canonical_region(node: While, graph: Graph) -> While:
    inside = {name: _canonical_region(getattr(node, name), graph) for name in ("condition", "body")}
    return node.model_copy(update=inside)


def _canonical_region(region: Region, graph: Graph) -> Region:
    found = _canonical(_with_canonical_regions(Graph.of_region(region, graph.symbols)), names_symbols=False)
    return Region.model_construct(
        nodes=tuple(record_of(kind, fields) for kind, fields in found.contents),
        vars_metadata=found.vars_metadata,
        input_vars=found.input_vars,
        output_vars=found.output_vars,
    )


def _in_order(graph: Graph, found: Dependencies, order: list[int], names_symbols: bool) -> Canonical:
    """The canonical form of the user's nodes `order`, in that order; symbols are renamed only with `names_symbols`."""
    nodes = [graph.nodes[index] for index in order]
    names = {name: name for name in graph.symbols}
    if names_symbols:
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
    contents: list[tuple[type[AnyNode], dict[str, Any]]] = []

    def place(name: str) -> str:
        return device(name) or "CPU"

    for index, node in zip(order, nodes, strict=True):
        writes: dict[int, int] = {}
        for var in found.outs[index]:
            number = len(user_vars)
            writes[var], user_vars[number] = number, var
            reads.setdefault(var, number)
            metadata[number] = stated.of(var)
        contents.append((type(node), renamed_fields(node, reads, writes, rename, sym_vars, place)))
    return Canonical(
        source=graph,
        vars=user_vars,
        symbols={names[name]: name for name in names},
        nodes=tuple(order),
        contents=contents,
        vars_metadata=metadata,
        input_vars=tuple(reads[var] for var in graph.input_vars),
        parameter_vars=tuple(sorted(reads[var] for var in graph.parameter_vars)),
        output_vars=tuple(reads[var] for var in graph.output_vars),
        # In the order of their numbers.
        symbolic_vars=tuple(sym_vars[name] for name in names),
    )


def _dims(graph: Graph, nodes: list[AnyNode]) -> list[Dim]:
    """The distinct symbolic dims in the nodes and in their stated shapes, by first use."""
    if not graph.symbols:
        return []
    found: dict[Dim, None] = {}
    types = graph.types
    for node in nodes:
        for value in symbolic_fields(node):
            found.update(dict.fromkeys(dims_of(value)))
        for var in out_vars(node):
            found.update(dict.fromkeys(dims_of(_stated_shape(types, graph, var))))
    return list(found)


def _stated_shape(types: Mapping[int, TensorType], graph: Graph, var: int) -> tuple[Dim, ...]:
    """The shape in the metadata, which is the inferred one or a condition on the call; else the inferred shape."""
    stated = graph.vars_metadata.get(var)
    return types[var].shape if stated is None else stated.shape


def _renamer(names: Mapping[str, str]) -> Callable[[Dim], Dim] | None:
    """A function that renames the symbols of a dim and caches by dim; None without symbols."""
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
    """The metadata of canonical vars; equal metadata shares one object."""

    def __init__(self, graph: Graph, rename: Callable[[Dim], Dim] | None, device: Callable[[str], str | None]) -> None:
        self._types, self._stated = graph.types, graph.vars_metadata
        self._rename, self._device = rename, device
        self._known: dict[tuple[DType, tuple[Dim, ...], str | None], VarMetadata] = {}
        # Inference and decoding share objects, so most look-ups succeed by identity.
        self._seen: dict[tuple[int, int], VarMetadata] = {}

    def of(self, var: int) -> VarMetadata:
        """The inferred dtype and device of the user's `var`, and the stated shape."""
        inferred, stated = self._types[var], self._stated.get(var)
        seen = (id(inferred), id(stated))
        found = self._seen.get(seen)
        if found is None:
            found = self._seen[seen] = self._alike(inferred, inferred.shape if stated is None else stated.shape)
        return found

    def _alike(self, inferred: TensorType, shape: tuple[Dim, ...]) -> VarMetadata:
        key = (inferred.dtype, shape, inferred.device)
        found = self._known.get(key)
        if found is None:
            shape = shape if self._rename is None else rename_dims(shape, self._rename)
            place = None if inferred.device is None else self._device(inferred.device)
            found = self._known[key] = VarMetadata.model_construct(dtype=inferred.dtype, shape=shape, device=place)
        return found


def _device_names(graph: Graph, nodes: list[AnyNode]) -> Callable[[str], str | None]:
    """A function from device names to canonical ones.

    Where every var is on the home device, the name of that does not matter: it becomes CPU if a buffer or copy has to
    name a device, else None.
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
