"""Declaration of a model's inputs and their dimensions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from onnx import GraphProto, TensorShapeProto, TypeProto, ValueInfoProto
from onnx.helper import tensor_dtype_to_np_dtype

from ...build import Builder, Tensor
from ...errors import CallInputError, UnsupportedGraphError
from ...expr import Dim
from ..bounds import Bounds, require_known
from .parameters import element_type
from .value import Held, Host, Items, Nothing

Fixed: TypeAlias = "Host | np.generic | float | Sequence[Any] | None"
"""The value of a fixed input: an array, or plain numbers, which take the input's element type; arrays for a sequence;
None for an absent optional value.
"""


def declare_inputs(
    builder: Builder,
    graph: GraphProto,
    weights: Mapping[str, Host],
    symbols: Mapping[str, Bounds],
    constants: Mapping[str, Fixed],
) -> tuple[dict[str, Tensor], dict[str, Held]]:
    """Declare inputs as tensors, except those fixed by `constants`; return both. Excludes weights listed as inputs."""
    named = {entry.name: entry for entry in graph.input if entry.name not in weights}
    unknown = constants.keys() - named.keys()
    if unknown:
        raise CallInputError(f"the model has no input {min(unknown)!r} to fix; its inputs are {sorted(named)}")
    dims = _Dims(builder, symbols)
    inputs = {name: _declare(builder, entry, dims) for name, entry in named.items() if name not in constants}
    dims.require_used()
    return inputs, {name: _fixed(name, named[name].type, given) for name, given in constants.items()}


def _fixed(name: str, kind: TypeProto, given: Fixed) -> Held:
    """Convert a fixed value to the input's element type. CallInputError when it does not fit."""
    form = kind.WhichOneof("value")
    if form == "optional_type":
        return Nothing() if given is None else _fixed(name, kind.optional_type.elem_type, given)
    if form == "sequence_type" and isinstance(given, Sequence):
        element = kind.sequence_type.elem_type
        return Items(tuple(_fixed_array(name, element, array) for array in given))
    if form != "tensor_type" or given is None:
        takes = {"sequence_type": "a sequence of arrays", "tensor_type": "an array"}.get(form or "", "what graphs lack")
        raise CallInputError(f"the input {name!r} takes {takes}; what fixes it is {type(given).__name__}")
    return _fixed_array(name, kind, given)


def _fixed_array(name: str, type_: TypeProto, value: object) -> Host:
    """Convert an array or plain numbers to the input's element type. CallInputError when they may not fit."""
    kind = tensor_dtype_to_np_dtype(type_.tensor_type.elem_type)
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        fits = np.can_cast(array.dtype, kind)
    else:
        array = _plain(name, value)
        is_bool = array.dtype.kind == "b"
        fits = is_bool == (kind.kind == "b") and (kind.kind in "bf" or (kind.kind in "iu" and _holds(kind, array)))
    if not fits:
        raise CallInputError(f"the input {name!r} is of {kind}; the array that fixes it is of {array.dtype}")
    return array.astype(kind, copy=False)


def _plain(name: str, value: object) -> Host:
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError) as error:
        raise CallInputError(f"the input {name!r} is not an array: {error}") from error
    if array.dtype.kind not in "biuf":
        raise CallInputError(f"the input {name!r} is fixed to values that are not numbers")
    return array


def _holds(kind: np.dtype[Any], array: Host) -> bool:
    limits = np.iinfo(kind)
    return array.size == 0 or (
        array.dtype.kind in "iu" and limits.min <= int(array.min()) and int(array.max()) <= limits.max
    )


def _declare(builder: Builder, entry: ValueInfoProto, dims: _Dims) -> Tensor:
    form = entry.type.WhichOneof("value")
    if form in ("sequence_type", "optional_type"):
        what = "a sequence, of which graphs know the length" if form == "sequence_type" else "an optional value"
        raise UnsupportedGraphError(f"the input {entry.name!r} is {what}; pass {entry.name!r} in `constants`")
    kind = entry.type.tensor_type
    if not entry.type.HasField("tensor_type") or not kind.HasField("shape"):
        raise UnsupportedGraphError(f"the input {entry.name!r} is not a tensor of a known rank")
    shape = [dims.resolve(entry.name, axis, dim) for axis, dim in enumerate(kind.shape.dim)]
    return builder.input(element_type(tensor_dtype_to_np_dtype(kind.elem_type)), shape, entry.name)


class _Dims:
    """Dimensions by name, declared as symbols at first use."""

    def __init__(self, builder: Builder, symbols: Mapping[str, Bounds]) -> None:
        self._builder = builder
        self._bounds = dict(symbols)
        self._found: dict[str, Dim] = {}

    def resolve(self, owner: str, axis: int, dim: TensorShapeProto.Dimension) -> Dim:
        """A dim's value, or its symbol; a dim without a name is called `<input>_<axis>`."""
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
    """A valid graph name for a model's name."""
    return _identifier(name) if name else "onnx"


def _identifier(name: str) -> str:
    cleaned = re.sub(r"[^A-Za-z0-9_.]", "_", name)
    return (cleaned if re.match(r"[A-Za-z_]", cleaned) else f"_{cleaned}")[:64]
