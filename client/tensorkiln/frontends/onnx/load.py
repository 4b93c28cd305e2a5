"""Import of an ONNX model as a graph."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import onnx
from onnx import GraphProto, ModelProto, TensorProto, defs

from ...build import Builder, Tensor
from ...canonical.one_spelling import one_spelling
from ...dtypes import DType
from ...errors import InvalidGraphError, UnsupportedGraphError
from ..bounds import Bounds
from ..model import Model
from . import ml
from .declare import Fixed, declare_inputs, graph_name
from .functions import Functions
from .parameters import KeyMissingError, Parameters
from .scope import UNREADABLE, Scope, initializer
from .value import Held, Host, Items, Nothing, Value

MIN_OPSET = 6
KEY = "random_key"
"""The input of a graph that draws random numbers."""
_ELEMENT_TYPES = frozenset(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
Source: TypeAlias = "ModelProto | bytes | str | os.PathLike[str]"


def load(
    model: Source,
    *,
    symbols: Mapping[str, Bounds] | None = None,
    constants: Mapping[str, Fixed] | None = None,
) -> Model:
    """Import a model, a serialized model, or a file with its external data.

    `symbols` gives each symbolic dimension its inclusive bounds, or one integer that fixes it. `constants` fixes inputs
    that shapes depend on: to arrays or plain numbers, sequences to lists of arrays, and optional values to one of these
    or to None. An output that is a sequence becomes one output for each element, `<name>/0` and so on. Initializers
    become parameters: inputs of the graph with an array to bind. Values that depend on neither inputs nor symbols are
    computed here, in NumPy. A model that draws random numbers without a seed has one more input, the uint64
    `random_key` of rank 0: the same key gives the same numbers.

    UnsupportedGraphError names the node and the operator, attribute, type or opset that is not supported;
    InvalidGraphError names the node whose shapes or types do not fit, or says why the bytes are not a model.
    RequestError for bounds of a dimension that no input has, OSError when a file cannot be opened.
    """
    proto = _read(model)
    _refuse_damage(proto)
    if proto.graph.sparse_initializer:
        raise UnsupportedGraphError("sparse initializers are not supported")
    weights = {tensor.name: initializer(tensor) for tensor in proto.graph.initializer}
    try:
        return _imported(proto, weights, symbols or {}, constants or {}, draws=False)
    except KeyMissingError:
        # Inputs precede parameters, but whether a node draws random numbers is known only when it is run.
        return _imported(proto, weights, symbols or {}, constants or {}, draws=True)


def _imported(
    proto: ModelProto,
    weights: Mapping[str, Host],
    symbols: Mapping[str, Bounds],
    constants: Mapping[str, Fixed],
    *,
    draws: bool,
) -> Model:
    opsets = _opsets(proto)
    builder = Builder(graph_name(proto.graph.name))
    inputs, known = declare_inputs(builder, proto.graph, weights, symbols, constants)
    given = {name: tensor.var for name, tensor in inputs.items()}
    key = None
    if draws:
        if KEY in inputs:
            raise UnsupportedGraphError(f"an input is called {KEY!r}, as the key of random numbers is; rename it")
        key = builder.input(DType.UINT64, (), KEY)
        given[KEY] = key.var
    parameters = Parameters(builder, weights.values(), key)
    scope = Scope(parameters, Functions(proto), opsets, {**weights, **known, **inputs})
    names = [output.name for output in proto.graph.output]
    scope.run(proto.graph.node, names)
    outputs = _outputs({name: scope.output(name) for name in names}, parameters)
    builder.output(*outputs.values())
    named = {name: tensor.var for name, tensor in outputs.items()}
    return Model(one_spelling(builder.graph()), parameters.arrays, given, named)


def _outputs(results: Mapping[str, Held], parameters: Parameters) -> dict[str, Tensor]:
    """A sequence as one output for each element, called `<name>/0` and so on."""
    named: list[tuple[str, Value]] = []
    for name, held in results.items():
        if isinstance(held, Nothing):
            raise UnsupportedGraphError(f"the output {name!r} is an optional value that is not there")
        if isinstance(held, Items):
            named.extend((f"{name}/{place}", value) for place, value in enumerate(held.values))
        else:
            named.append((name, held))
    outputs = {name: _tensor(name, value, parameters) for name, value in named}
    if len(outputs) != len(named):
        twice = next(name for name in outputs if sum(name == other for other, _ in named) > 1)
        raise UnsupportedGraphError(
            f"the output {twice!r} has the name of an element of the sequence {twice.rpartition('/')[0]!r}; "
            "rename one of these outputs"
        )
    return outputs


def _tensor(name: str, value: Value, parameters: Parameters) -> Tensor:
    try:
        return value if isinstance(value, Tensor) else parameters.tensor(value)
    except UnsupportedGraphError as error:
        raise UnsupportedGraphError(f"the output {name!r}: {error.message}") from error


def _read(model: Source) -> ModelProto:
    if isinstance(model, ModelProto):
        return model
    try:
        return onnx.load_model_from_string(model) if isinstance(model, bytes) else onnx.load(Path(model))
    except UNREADABLE as error:
        called = "the text" if isinstance(model, bytes) else os.fspath(model)
        raise InvalidGraphError(f"{called} cannot be read as an ONNX model: {error}") from error


def _refuse_damage(proto: ModelProto) -> None:
    """InvalidGraphError for a missing graph, an unknown element type, or a name that is not UTF-8."""
    if not proto.HasField("graph"):
        raise InvalidGraphError("this is not an ONNX model: it has no graph")
    graph = proto.graph
    for entry in graph.input:
        kind = entry.type.tensor_type.elem_type
        if entry.type.HasField("tensor_type") and kind not in _ELEMENT_TYPES:
            raise InvalidGraphError(f"the input {entry.name!r} has the element type {kind}, which ONNX does not know")
    # Protobuf returns a string that is not UTF-8 as bytes.
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


def _opsets(proto: ModelProto) -> dict[str, int]:
    """The version of each domain. UnsupportedGraphError for an unsupported version."""
    versions = {entry.domain if entry.domain != "ai.onnx" else "": entry.version for entry in proto.opset_import}
    newest = defs.onnx_opset_version()
    # A model without operators of ONNX's own domain may omit its version.
    version = versions.setdefault("", newest)
    if not MIN_OPSET <= version <= newest:
        raise UnsupportedGraphError(f"the model is of opset {version}; supported are {MIN_OPSET} to {newest}")
    learning = versions.get(ml.DOMAIN, 1)
    if not 1 <= learning <= defs.onnx_ml_opset_version():
        raise UnsupportedGraphError(
            f"the model is of version {learning} of {ml.DOMAIN}; supported are 1 to {defs.onnx_ml_opset_version()}"
        )
    return versions
