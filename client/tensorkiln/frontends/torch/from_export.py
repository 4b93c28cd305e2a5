"""Conversion of torch's `ExportedProgram`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import CallInputError, UnsupportedGraphError
from .arrays import array_of
from .creation import LINES
from .exported import Exported, Input, Literal, Output, Role, Tree
from .from_fx import operations_of, output_of
from .ranges import INFINITE
from .recurrent import WHOLE


def decompositions() -> Any:
    """torch's table for `run_decompositions`, without recurrent layers, whose steps need not be unrolled, and lines."""
    import torch

    table = torch.export.default_decompositions()
    for operator in [each for each in table if str(each) in WHOLE or str(each) in LINES]:
        del table[operator]
    return table


def from_export(program: Any) -> Exported:
    """Decompose `program` to the core ATen operators and convert it.

    CallInputError when it is not an ExportedProgram; UnsupportedGraphError for unsupported inputs and outputs.
    """
    import torch

    if not isinstance(program, torch.export.ExportedProgram):
        raise CallInputError(f"a {type(program).__name__} is neither an ExportedProgram nor a path; export the module")
    core = program.run_decompositions(decompositions())
    nodes = list(core.graph.nodes)
    operations, types = operations_of(nodes)
    literals: dict[str, Literal] = {}
    signature = core.graph_signature
    inputs = tuple(_input(spec, literals) for spec in signature.input_specs if spec.kind.name != "TOKEN")
    values = output_of(nodes)
    outputs = zip(signature.output_specs, values, strict=True)
    call = core.call_spec
    return Exported(
        "exported",
        inputs,
        operations,
        tuple(_output(spec, value) for spec, value in outputs if spec.kind.name != "TOKEN"),
        types,
        ranges_of(core.range_constraints),
        _arrays(core),
        _tree(call.in_spec),
        tuple(core.module_call_graph[0].signature.forward_arg_names or ()),
        _tree(call.out_spec),
        literals,
    )


def ranges_of(constraints: Mapping[Any, Any]) -> dict[str, tuple[int, int | None]]:
    """Bounds of symbols by name; an infinite upper bound is None."""
    found: dict[str, tuple[int, int | None]] = {}
    for symbol, bounds in constraints.items():
        if symbol.is_Symbol:
            high = bounds.upper
            is_finite = high.is_Integer and int(high) < INFINITE
            found[str(symbol)] = (
                max(int(bounds.lower), 0) if bounds.lower.is_Integer else 0,
                int(high) if is_finite else None,
            )
    return found


def _input(spec: Any, literals: dict[str, Literal]) -> Input:
    from torch.export.graph_signature import InputKind

    roles = {
        InputKind.USER_INPUT: Role.USER,
        InputKind.PARAMETER: Role.PARAMETER,
        InputKind.BUFFER: Role.BUFFER,
        InputKind.CONSTANT_TENSOR: Role.CONSTANT,
    }
    if spec.kind not in roles:
        raise UnsupportedGraphError(
            f"the input {spec.arg.name!r} is a {spec.kind.name.lower()}, which is not supported"
        )
    if hasattr(spec.arg, "value"):
        literals[spec.arg.name] = spec.arg.value
    return Input(spec.arg.name, roles[spec.kind], spec.target or "")


def _output(spec: Any, value: Any) -> Output:
    from torch.export.graph_signature import OutputKind

    roles = {
        OutputKind.BUFFER_MUTATION: Role.BUFFER,
        OutputKind.PARAMETER_MUTATION: Role.PARAMETER,
        OutputKind.USER_INPUT_MUTATION: Role.USER,
    }
    if spec.kind in roles:
        return Output(value, spec.target, roles[spec.kind])
    if spec.kind is not OutputKind.USER_OUTPUT:
        raise UnsupportedGraphError(f"an output that is a {spec.kind.name.lower()} is not supported")
    return Output(value)


def _arrays(program: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Copies of parameters, buffers and constants; tensors that share memory become one array.

    Copied because the module may be trained further, which must not change bound arrays.
    """
    found: dict[str, np.ndarray[Any, Any]] = {}
    shared: dict[tuple[Any, ...], np.ndarray[Any, Any]] = {}
    import torch

    for name, value in {**program.state_dict, **program.constants}.items():
        if isinstance(value, torch.Tensor):
            key = (value.data_ptr(), value.dtype, value.shape, value.stride())
            if not value.numel() or key not in shared:
                shared[key] = np.array(array_of(value), order="C")
            found[name] = shared[key]
    return found


def _tree(spec: Any) -> Tree:
    from torch.utils import _pytree as pytree

    if spec.is_leaf():
        return Tree("leaf")
    children = tuple(_tree(child) for child in spec.children())
    kind, context = spec.type, spec.context
    if kind in (tuple, list):
        return Tree(kind.__name__, (), children)
    if kind is dict or kind.__name__ == "OrderedDict" or kind.__name__ == "immutable_dict":
        return Tree("dict", tuple(context), children)
    if kind.__name__ == "immutable_list":
        return Tree("list", (), children)
    unflatten = pytree.SUPPORTED_NODES[kind].unflatten_fn
    fields = getattr(kind, "_fields", ())
    return Tree(kind.__name__, tuple(fields), children, lambda parts: unflatten(parts, context))
