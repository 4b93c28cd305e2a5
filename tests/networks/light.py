"""The light networks of the onnx package with their logits as a second output, and with weights drawn at random.

The package ships every weight of a network as the same number, computed by the model itself. That makes all logits
alike, and a softmax of large logits would hide every error: so the logits are compared, of weights that differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.frontends.onnx.reference_operators import LRN, BatchNormalization
from tests.networks.operators import AveragePool, Conv, MaxPool

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = tuple(sorted(path.stem.removeprefix("light_") for path in DATA.glob("light_*.onnx")))

GAINS = {"Relu": 2.0, "Sum": 0.25}
"""Variance that a layer multiplies by: a relu halves it again (He 2015), a residual sum adds the shortcut's."""

Array = np.ndarray[Any, Any]
Readers = dict[str, tuple[NodeProto, int]]


def shipped(name: str) -> ModelProto:
    """The network with its constant weights; the logits are its last output, and its only one without a softmax."""
    model = onnx.load(DATA / f"light_{name}.onnx")
    last = model.graph.node[-1]
    if last.op_type == "Softmax":
        model.graph.output.append(helper.make_tensor_value_info(last.input[0], TensorProto.FLOAT, None))
    return model


def expected_output(name: str) -> Array:
    """What the package gives as the network's first output for the ramp from 0 to 1."""
    return numpy_helper.to_array(onnx.load_tensor(DATA / f"light_{name}_output_0.pb"))


def with_random_weights(model: ModelProto, seed: int = 0) -> ModelProto:
    """The same network, each constant that it computes replaced by an initializer drawn for the node that reads it."""
    rng = np.random.default_rng(seed)
    drawn = ModelProto()
    drawn.CopyFrom(model)
    graph = drawn.graph
    shapes = {tensor.name: tuple(numpy_helper.to_array(tensor)) for tensor in graph.initializer}
    constants = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    others = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    readers = {name: (node, place) for node in reversed(others) for place, name in enumerate(node.input)}
    del graph.node[:]
    graph.node.extend(others)
    for node in constants:
        (name,) = node.output
        array = _draw(rng, readers, name, shapes[node.input[0]])
        # Some have half a gigabyte: `from_array` and `append` would make two more copies.
        graph.initializer.add(name=name, dims=array.shape, data_type=TensorProto.FLOAT, raw_data=array.tobytes())
    return drawn


def _draw(rng: np.random.Generator, readers: Readers, name: str, shape: tuple[int, ...]) -> Array:
    """Weights for layers that neither amplify nor weaken, factors near 1, small offsets."""
    reader, place = readers[name]
    if reader.op_type == "Unsqueeze":
        reader, place = readers[reader.output[0]]
    if reader.op_type in ("Conv", "Gemm") and place == 1:
        inputs_of_each_output = int(np.prod(shape[1:]))
        gain = GAINS.get(_after_normalization(readers, reader), 1)
        drawn = rng.standard_normal(shape, np.float32)
        return np.multiply(drawn, np.float32(np.sqrt(gain / inputs_of_each_output)), drawn)
    is_factor = (reader.op_type, place) in {("BatchNormalization", 1), ("BatchNormalization", 4), ("Mul", 1)}
    return rng.uniform(0.5, 1.2, shape).astype(np.float32) if is_factor else rng.standard_normal(shape, np.float32) / 10


def _after_normalization(readers: Readers, layer: NodeProto) -> str:
    """The operator that a layer's normalized result goes to; empty where the layer is the last."""
    while layer.output[0] in readers:
        layer, _ = readers[layer.output[0]]
        if layer.op_type not in ("BatchNormalization", "Mul", "Add"):
            return layer.op_type
    return ""


def logits(model: ModelProto, image: Array) -> Array:
    """What onnx's evaluator gives for the last output, with the operators that it has wrong or slow replaced."""
    evaluator = ReferenceEvaluator(model, new_ops=[BatchNormalization, LRN, Conv, MaxPool, AveragePool])
    given = {tensor.name for tensor in model.graph.initializer}
    (name,) = (entry.name for entry in model.graph.input if entry.name not in given)
    result: Any = evaluator.run(None, {name: image})
    return result[-1]
