"""The inputs of a model: which are data, which are weights, and what their dimensions are."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from onnx import GraphProto, TensorShapeProto, ValueInfoProto
from onnx.helper import tensor_dtype_to_np_dtype

from ...build import Builder, Tensor
from ...errors import CallInputError, UnsupportedGraphError
from ...expr import Dim
from ..bounds import Bounds, require_known
from .parameters import element_type
from .value import Host


def declare_inputs(
    builder: Builder,
    graph: GraphProto,
    weights: Mapping[str, Host],
    symbols: Mapping[str, Bounds],
    constants: Mapping[str, Host],
) -> tuple[dict[str, Tensor], dict[str, Host]]:
    """The inputs as tensors, and those that `constants` fixes as arrays. Old models list weights as inputs, too."""
    named = {entry.name: entry for entry in graph.input if entry.name not in weights}
    unknown = constants.keys() - named.keys()
    if unknown:
        raise CallInputError(f"the model has no input {min(unknown)!r} to fix; its inputs are {sorted(named)}")
    dims = _Dims(builder, symbols)
    untyped = next((name for name in constants if not named[name].type.HasField("tensor_type")), None)
    if untyped is not None:
        raise UnsupportedGraphError(f"the input {untyped!r} is no tensor")
    inputs = {name: _declare(builder, entry, dims) for name, entry in named.items() if name not in constants}
    dims.require_used()
    return inputs, {name: _fixed(named[name], np.asarray(array)) for name, array in constants.items()}


def _fixed(entry: ValueInfoProto, array: Host) -> Host:
    """The array in the input's element type. CallInputError when it may not fit that."""
    kind = tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type)
    if not np.can_cast(array.dtype, kind):
        raise CallInputError(f"the input {entry.name!r} is of {kind}; the array that fixes it is of {array.dtype}")
    return array.astype(kind, copy=False)


def _declare(builder: Builder, entry: ValueInfoProto, dims: _Dims) -> Tensor:
    kind = entry.type.tensor_type
    if not entry.type.HasField("tensor_type") or not kind.HasField("shape"):
        raise UnsupportedGraphError(f"the input {entry.name!r} is no tensor of a known rank")
    shape = [dims.resolve(entry.name, axis, dim) for axis, dim in enumerate(kind.shape.dim)]
    return builder.input(element_type(tensor_dtype_to_np_dtype(kind.elem_type)), shape, entry.name)


class _Dims:
    """Dimensions by name: each is declared as a symbol when it is met for the first time."""

    def __init__(self, builder: Builder, symbols: Mapping[str, Bounds]) -> None:
        self._builder = builder
        self._bounds = dict(symbols)
        self._found: dict[str, Dim] = {}

    def resolve(self, owner: str, axis: int, dim: TensorShapeProto.Dimension) -> Dim:
        """A dim's value, or the symbol of its name; a dim without a name is called `<input>_<axis>`."""
        if dim.HasField("dim_value"):
            return dim.dim_value
        name = dim.dim_param or f"{owner}_{axis}"
        if name not in self._found:
            self._found[name] = self._declare(name, owner, axis)
        return self._found[name]

    def _declare(self, name: str, owner: str, axis: int) -> Dim:
        if name not in self._bounds:
            raise UnsupportedGraphError(
                f"axis {axis} of the input {owner!r} is dynamic; give its bounds as symbols={{{name!r}: (1, 64)}}",
                details={"dimension": name},
            )
        bounds = self._bounds[name]
        if isinstance(bounds, int):
            return bounds
        symbol = _identifier(name)
        if symbol in self._builder.symbols:
            raise UnsupportedGraphError(f"two dynamic dimensions become the symbol {symbol!r}; one is {name!r}")
        return self._builder.symbol(symbol, *bounds)

    def require_used(self) -> None:
        """RequestError for bounds of a dimension that no input has."""
        require_known(self._bounds, self._found)


def graph_name(name: str) -> str:
    """A model's name as a graph's."""
    return _identifier(name) if name else "onnx"


def _identifier(name: str) -> str:
    cleaned = re.sub(r"[^A-Za-z0-9_.]", "_", name)
    return (cleaned if re.match(r"[A-Za-z_]", cleaned) else f"_{cleaned}")[:64]
