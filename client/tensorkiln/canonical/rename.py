"""Renaming of the vars, symbols and devices of a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from ..expr import Dim, Expr, symbol
from ..nodes import (
    NODE_KINDS,
    AnyNode,
    Assign,
    ConstScalar,
    DefineVar,
    Kernel,
    Region,
    SymVar,
    Vconst,
    While,
    out_vars,
)
from ..nodes.base import Record, record_of
from ..nodes.literals import canonical_literal

_DIM_FIELDS: Final = frozenset(
    {
        "attributes",
        "limits",
        "new_shape",
        "new_target_shape",
        "offset",
        "pad_width",
        "shape",
        "shape_tracker",
        "size",
        "size_in_elements",
    }
)
_DEVICE_FIELDS: Final = frozenset({"device", "device_name", "target_device"})


def _fields(choose: Callable[[type[AnyNode], str], bool]) -> dict[type[AnyNode], tuple[str, ...]]:
    models = NODE_KINDS.values()
    return {model: tuple(name for name in model.model_fields if choose(model, name)) for model in models}


def _holds_vars(model: type[AnyNode], name: str) -> bool:
    return (name.endswith(("_var", "_vars")) and (model, name) != (DefineVar, "sym_var")) or name == "deps"


_OUTS: Final = frozenset({"out_var", "output_vars"})
_VARS: Final = {model: tuple((name, name in _OUTS) for name in names) for model, names in _fields(_holds_vars).items()}
"""The fields that hold vars, and whether the node defines these."""

_DIMS: Final = _fields(lambda _, name: name in _DIM_FIELDS)
_DEVICES: Final = _fields(lambda _, name: name in _DEVICE_FIELDS)
_OTHERS: Final = frozenset(
    {Assign, DefineVar, ConstScalar, Vconst, Kernel, While, *(model for model, names in _DEVICES.items() if names)}
)
"""The kinds with more to rename than vars and dims."""


def dims_of(value: object) -> Iterator[Dim]:
    """The symbolic dims in a field: a dim, a record or nested sequences of them, in order."""
    if isinstance(value, Expr):
        yield value
    elif isinstance(value, tuple):
        for item in cast("tuple[object, ...]", value):
            yield from dims_of(item)
    elif isinstance(value, Record):
        for name in type(value).model_fields:
            yield from dims_of(getattr(value, name))


def symbolic_fields(node: AnyNode) -> Iterator[object]:
    """The fields of a node, and of nodes inside it, that may hold dims; and the symbol that it defines."""
    while isinstance(node, Kernel):
        node = node.ast
    if isinstance(node, DefineVar):
        yield symbol(node.sym_var.name)
    elif isinstance(node, While):
        yield from _symbolic_in(node.condition)
        yield from _symbolic_in(node.body)
    for name in _DIMS[type(node)]:
        yield getattr(node, name)


def _symbolic_in(region: Region) -> Iterator[object]:
    for node in region.nodes:
        yield from symbolic_fields(node)
        for var in out_vars(node):
            if var in region.vars_metadata:
                yield region.vars_metadata[var].shape


def rename_dims(value: Any, rename: Callable[[Dim], Dim]) -> Any:
    """A field with every symbolic dim in it renamed."""
    if isinstance(value, Expr):
        return rename(value)
    if isinstance(value, tuple):
        return tuple(rename_dims(item, rename) for item in cast("tuple[object, ...]", value))
    if isinstance(value, Record):
        changed = {name: rename_dims(getattr(value, name), rename) for name in type(value).model_fields}
        return record_of(type(value), changed)
    return value


def renamed_fields(
    node: AnyNode,
    reads: Mapping[int, int],
    writes: Mapping[int, int],
    dim: Callable[[Dim], Dim] | None,
    symbols: Mapping[str, SymVar],
    device: Callable[[str], str],
) -> dict[str, Any]:
    """The fields of `node` with its read and defined vars, dims (None: no symbols), symbol and devices renamed.

    Literals get their canonical spelling.
    """
    kind = type(node)
    fields = node.__dict__.copy()
    for name, is_out in _VARS[kind]:
        names, value = writes if is_out else reads, fields[name]
        fields[name] = tuple([names[var] for var in value]) if type(value) is tuple else names.get(value)
    if dim is not None:
        for name in _DIMS[kind]:
            fields[name] = rename_dims(fields[name], dim)
    if kind not in _OTHERS:
        return fields
    for name in _DEVICES[kind]:
        fields[name] = device(fields[name])
    if isinstance(node, Assign):
        fields["updates"] = tuple((reads[source], reads[target], span) for source, target, span in node.updates)
    elif isinstance(node, DefineVar):
        fields["sym_var"] = symbols[node.sym_var.name]
    elif isinstance(node, ConstScalar):
        fields["value"] = canonical_literal(node.value, node.dtype)
    elif isinstance(node, Vconst):
        fields["values"] = tuple(canonical_literal(value, node.dtype) for value in node.values)
    elif isinstance(node, Kernel):
        inside = renamed_fields(node.ast, reads, writes, dim, symbols, device)
        fields["ast"] = record_of(type(node.ast), inside)
    elif isinstance(node, While) and dim is not None:
        for name in ("condition", "body"):
            fields[name] = _renamed_region(fields[name], dim, symbols, device)
    return fields


def _renamed_region(
    region: Region, dim: Callable[[Dim], Dim], symbols: Mapping[str, SymVar], device: Callable[[str], str]
) -> Region:
    """A region with symbols and devices renamed; its vars, which are its own, keep their names."""
    same = {var: var for node in region.nodes for var in out_vars(node)}
    nodes = [record_of(type(node), renamed_fields(node, same, same, dim, symbols, device)) for node in region.nodes]
    stated = {var: rename_dims(known, dim) for var, known in region.vars_metadata.items()}
    return region.model_copy(update={"nodes": tuple(nodes), "vars_metadata": stated})
