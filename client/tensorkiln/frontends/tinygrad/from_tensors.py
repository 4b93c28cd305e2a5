"""A model from tensors that tinygrad has not realized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...build import Builder, Tensor
from ...errors import CallInputError
from ...expr import product
from ..model import Model
from .arrays import Array, array_of_buffer
from .element_types import dtype_of, is_open, named
from .installed import installed
from .translate import Translation


def model(
    outputs: Any,
    inputs: Mapping[str, Any] | None = None,
    name: str = "tinygrad",
) -> Model:
    """The model that computes `outputs` from `inputs`; no tensor is realized.

    `outputs` is a tensor, a sequence of tensors, or a mapping by name; without names they are called `output`, or by
    their positions. `inputs` are the tensors that each call passes, by name; they need storage, as from `Tensor.empty`.
    Other realized tensors become parameters; unrealized ones are computed. Variables, bound or not, become symbols with
    their bounds.

    Random numbers are those that tinygrad would draw if the tensors were realized now: the same at each call.

    RequestError without tinygrad; CallInputError for invalid inputs or outputs; UnsupportedGraphError, which lists all
    unsupported operations.
    """
    tensor = installed().Tensor
    named_outputs = _named(tensor, outputs)
    for place, each in (inputs or {}).items():
        if not isinstance(each, tensor):
            raise CallInputError(f"the input {place!r} is a {type(each).__name__}, not a tensor of tinygrad")
    uops = {place: each.uop for place, each in (inputs or {}).items()}
    return model_of(name, uops, {place: each.uop for place, each in named_outputs.items()})


def model_of(name: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Model:
    """The model of tinygrad graphs, given by the names of inputs and outputs; errors as for `model`."""
    builder = Builder(name)
    arrays: dict[int, Array] = {}
    read: dict[Any, Tensor] = {}

    def parameter(uop: Any) -> Tensor:
        if uop not in read:
            tensor = builder.parameter(named(uop.dtype), uop.shape, f"parameters/{len(read)}")
            arrays[tensor.var] = array_of_buffer(uop)
            read[uop] = tensor
        return read[uop]

    translation = Translation(builder, parameter)
    declared = {place: _declared(translation, place, uop) for place, uop in inputs.items()}
    results = translation.values(list(outputs.values()))
    for place, uop in inputs.items():
        hidden = [each for each in read if each in uop.toposort()]
        if hidden:
            raise CallInputError(
                f"the input {place!r} is computed of a tensor that the outputs read as well: make that the input"
            )
    builder.output(*results)
    return Model(
        builder.graph(),
        arrays,
        {place: tensor.var for place, tensor in declared.items()},
        {place: tensor.var for place, tensor in zip(outputs, results, strict=True)},
    )


def _declared(translation: Translation, name: str, uop: Any) -> Tensor:
    """Declare an input. If it is a whole buffer, that becomes the input, since outputs may view it differently."""
    if is_open(uop) or uop.device is None:
        raise CallInputError(f"the input {name!r} has no storage: it is a constant. Make it by Tensor.empty")
    if not isinstance(uop.device, str):
        raise CallInputError(f"the input {name!r} lies on several devices")
    tensor = translation.builder.input(dtype_of(uop), translation.sizes.shape(uop), name)
    buffer = uop
    while buffer.op.name == "RESHAPE":
        buffer = buffer.src[0]
    is_buffer = buffer.op.name == "BUFFER"
    target, value = (buffer, tensor.reshape(product(tensor.shape))) if is_buffer else (uop, tensor)
    if target in translation.given:
        raise CallInputError(f"the input {name!r} is another input as well")
    translation.given[target] = value
    return tensor


def _named(tensor: Any, outputs: Any) -> dict[str, Any]:
    if isinstance(outputs, tensor):
        return {"output": outputs}
    named_outputs = (
        dict(outputs)
        if isinstance(outputs, Mapping)
        else {str(place): each for place, each in enumerate(outputs)}
        if isinstance(outputs, Sequence)
        else {}
    )
    if not named_outputs or not all(isinstance(each, tensor) for each in named_outputs.values()):
        raise CallInputError(f"the outputs are a {type(outputs).__name__}: give a tensor, a list or a dict of some")
    return named_outputs
