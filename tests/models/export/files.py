"""An export as it lies in the repository: without what the exporter says of itself, weights in a file for all four."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx
from onnx import ModelProto, TensorProto, external_data_helper, numpy_helper

_SMALLEST = 1024
"""Bytes from which on a weight is shared; smaller ones stay in the model."""


@dataclass(slots=True)
class Weights:
    """The bytes of all weights of a family, each once."""

    name: str
    content: bytearray = field(default_factory=bytearray)
    places: dict[bytes, int] = field(default_factory=dict)

    def share(self, tensor: TensorProto) -> None:
        """Move the values of a tensor into the file, if they are many."""
        data = numpy_helper.to_array(tensor).tobytes()
        tensor.raw_data = data
        for name in ("float_data", "int32_data", "int64_data", "double_data"):
            tensor.ClearField(name)
        if len(data) < _SMALLEST:
            return
        if data not in self.places:
            self.places[data] = len(self.content)
            self.content += data
        external_data_helper.set_external_data(tensor, self.name, self.places[data], len(data))
        tensor.ClearField("raw_data")


def shortened(model: ModelProto, weights: Weights) -> bytes:
    """The bytes of the model: no stack traces, no shapes of inner values, its weights in `weights`."""
    onnx.checker.check_model(model)
    model.ClearField("metadata_props")
    del model.graph.value_info[:]
    for part in (model.graph, *model.graph.node, *model.graph.initializer, *model.graph.input, *model.graph.output):
        part.ClearField("doc_string")
        part.ClearField("metadata_props")
    for tensor in model.graph.initializer:
        weights.share(tensor)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                weights.share(attribute.t)
    return model.SerializeToString(deterministic=True)
