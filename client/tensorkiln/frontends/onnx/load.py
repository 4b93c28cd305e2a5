"""A model, node by node, into a graph."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnx
from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, checker, defs, numpy_helper, parser

from ...build import Builder, Tensor
from ...errors import InvalidGraphError, UnsupportedGraphError
from .declare import Bounds, declare_inputs, graph_name
from .folding import fold, is_foldable
from .model import OnnxModel
from .naming import named
from .node import Node
from .operators import OPERATORS
from .parameters import Parameters
from .signature import check_inputs
from .value import Host, Value

MIN_OPSET = 6
_UNREADABLE = (
    *(DecodeError, json_format.Error, text_format.Error, checker.ValidationError, parser.ParseError),
    *(ValueError, TypeError, KeyError, NotImplementedError),
)
"""What protobuf and onnx raise on bytes that are no model, or no tensor of a known type."""
_ELEMENT_TYPES = frozenset(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
Source: TypeAlias = "ModelProto | bytes | str | os.PathLike[str]"


@dataclass(frozen=True, slots=True)
class _Absent:
    """An output that we do not compute; only reading it is an error."""

    reason: str


def load(
    model: Source,
    *,
    symbols: Mapping[str, Bounds] | None = None,
    constants: Mapping[str, Host] | None = None,
) -> OnnxModel:
    """Import a model, a serialized model, or a file with its external data.

    `symbols` gives each symbolic dimension its inclusive bounds, or one integer that fixes it. `constants` fixes inputs
    that shapes depend on. Initializers become parameters: inputs of the graph with an array to bind. What depends on
    neither inputs nor symbols is computed here, in NumPy.

    UnsupportedGraphError names the node and the operator, attribute, type or opset that is not supported;
    InvalidGraphError names the node whose shapes or types do not fit, or says why these bytes are no model. OSError
    when a file cannot be opened.
    """
    proto = _read(model)
    _refuse_damage(proto)
    opset = _opset(proto)
    builder = Builder(graph_name(proto.graph.name))
    weights = {tensor.name: _array(tensor) for tensor in proto.graph.initializer}
    if proto.graph.sparse_initializer or proto.functions:
        raise UnsupportedGraphError("sparse initializers and model-local functions are not supported")
    inputs, known = declare_inputs(builder, proto.graph, weights, symbols or {}, constants or {})
    values: dict[str, Value | _Absent] = {**weights, **known, **inputs}
    parameters = Parameters(builder, weights.values())
    read = {name for node in proto.graph.node for name in node.input} | {output.name for output in proto.graph.output}
    for position, node in enumerate(proto.graph.node):
        inputs_of_node = [_input(entry, node, values) for entry in node.input]
        _run(node, Node(node, node.name or f"#{position}", opset, inputs_of_node, parameters, read), values)
    outputs = {output.name: _output(output.name, values, parameters) for output in proto.graph.output}
    builder.output(*outputs.values())
    return OnnxModel(
        builder.graph(),
        parameters.arrays,
        {name: tensor.var for name, tensor in inputs.items()},
        {name: tensor.var for name, tensor in outputs.items()},
    )


def _read(model: Source) -> ModelProto:
    if isinstance(model, ModelProto):
        return model
    try:
        return onnx.load_model_from_string(model) if isinstance(model, bytes) else onnx.load(Path(model))
    except _UNREADABLE as error:
        called = "the text" if isinstance(model, bytes) else os.fspath(model)
        raise InvalidGraphError(f"{called} cannot be read as an ONNX model: {error}") from error


def _refuse_damage(proto: ModelProto) -> None:
    """InvalidGraphError for what protobuf lets pass: no graph, an element type that is none, names that are no text."""
    if not proto.HasField("graph"):
        raise InvalidGraphError("this is no ONNX model: it has no graph")
    graph = proto.graph
    for entry in graph.input:
        kind = entry.type.tensor_type.elem_type
        if entry.type.HasField("tensor_type") and kind not in _ELEMENT_TYPES:
            raise InvalidGraphError(f"the input {entry.name!r} has the element type {kind}, which ONNX does not know")
    # A text that is not UTF-8 comes out of protobuf as bytes.
    broken = next((name for name in _names(graph) if not isinstance(name, str)), None)
    if broken is not None:
        raise InvalidGraphError(f"the name {broken!r} is not UTF-8")


def _names(graph: GraphProto) -> Iterator[object]:
    yield graph.name
    for entry in (*graph.input, *graph.output, *graph.initializer):
        yield entry.name
    for entry in graph.input:
        yield from (dim.dim_param for dim in entry.type.tensor_type.shape.dim)
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)


def _array(tensor: TensorProto) -> Host:
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except _UNREADABLE as error:
        raise InvalidGraphError(f"the initializer {tensor.name!r} cannot be read: {error}") from error


def _opset(proto: ModelProto) -> int:
    versions = {entry.domain or "ai.onnx": entry.version for entry in proto.opset_import}
    version = versions.get("ai.onnx", 1)
    newest = defs.onnx_opset_version()
    if not MIN_OPSET <= version <= newest:
        raise UnsupportedGraphError(f"the model is of opset {version}; supported are {MIN_OPSET} to {newest}")
    return version


def _run(proto: NodeProto, node: Node, values: dict[str, Value | _Absent]) -> None:
    if proto.domain not in ("", "ai.onnx") or proto.op_type not in OPERATORS:
        node.fail(f"the operator {proto.domain or 'ai.onnx'}.{proto.op_type} is not supported")
    # What a fold overflows or divides by zero is what the operator would give, and no matter for warnings.
    with named(node), np.errstate(all="ignore"):
        check_inputs(node)
        results = _results(node)
    node.refuse_unread()
    for place, output in enumerate(proto.output):
        if place < len(results):
            values[output] = results[place]
        elif output:
            values[output] = _Absent(f"output {place} of {node.op} {node.name} is not supported")


def _results(node: Node) -> Sequence[Value]:
    result = fold(node) if is_foldable(node) else OPERATORS[node.op](node)
    return [result] if isinstance(result, Tensor | np.ndarray) else result


def _input(name: str, proto: NodeProto, values: Mapping[str, Value | _Absent]) -> Value | None:
    if not name:
        return None
    found = values.get(name)
    if isinstance(found, _Absent):
        raise UnsupportedGraphError(f"{found.reason}, but {proto.op_type} {proto.name} reads it")
    if found is None:
        raise InvalidGraphError(f"{proto.op_type} {proto.name} reads {name!r}, which no earlier node writes")
    return found


def _output(name: str, values: Mapping[str, Value | _Absent], parameters: Parameters) -> Tensor:
    found = values.get(name)
    if found is None or isinstance(found, _Absent):
        raise UnsupportedGraphError(found.reason if found is not None else f"no node writes the output {name!r}")
    return found if isinstance(found, Tensor) else parameters.tensor(found)
