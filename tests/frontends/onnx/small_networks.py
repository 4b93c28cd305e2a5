"""Networks of opset 9 with random weights, small enough for an evaluator in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]


def network(nodes: Sequence[NodeProto], weights: Mapping[str, Array], output: str, opset: int = 9) -> ModelProto:
    """A model of one input `image` (batch, 4, 12, 12) and one output."""
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 4, 12, 12])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def _weights(rng: np.random.Generator, **shapes: tuple[int, ...]) -> dict[str, Array]:
    return {name: (rng.standard_normal(shape) * 0.3).astype(np.float32) for name, shape in shapes.items()}


def residual_network(rng: np.random.Generator) -> ModelProto:
    """Two convolutions with batch normalisation, a shortcut, pooling, a linear layer, softmax."""
    weights = _weights(rng, w1=(6, 4, 3, 3), w2=(6, 6, 3, 3), w3=(6, 4, 1, 1), b3=(6,), wl=(5, 96), bl=(5,))
    for layer in ("1", "2"):
        weights |= _weights(rng, **{name + layer: (6,) for name in ("scale", "shift", "mean")})
        weights["variance" + layer] = rng.random(6).astype(np.float32) + 0.5
    node = helper.make_node
    nodes = [
        node("Conv", ["image", "w1"], ["c1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", ["c1", "scale1", "shift1", "mean1", "variance1"], ["n1"], epsilon=1e-3),
        node("Relu", ["n1"], ["r1"]),
        node("Conv", ["r1", "w2"], ["c2"], kernel_shape=[3, 3], auto_pad="SAME_UPPER"),
        node("BatchNormalization", ["c2", "scale2", "shift2", "mean2", "variance2"], ["n2"]),
        node("Conv", ["image", "w3", "b3"], ["c3"], kernel_shape=[1, 1], strides=[2, 2]),
        node("Sum", ["n2", "c3"], ["s"]),
        node("LRN", ["s"], ["l"], size=3, alpha=0.1, beta=0.75, bias=2.0),
        node("MaxPool", ["l"], ["p"], kernel_shape=[3, 3], strides=[1, 1]),
        node("Dropout", ["p"], ["d"], ratio=0.5),
        node("Shape", ["d"], ["shape"]),
        node("Constant", [], ["zero"], value=numpy_helper.from_array(np.array([0], np.int64))),
        node("Gather", ["shape", "zero"], ["rows"], axis=0),
        node("Constant", [], ["rest"], value=numpy_helper.from_array(np.array([-1], np.int64))),
        node("Concat", ["rows", "rest"], ["flat"], axis=0),
        node("Reshape", ["d", "flat"], ["f"]),
        node("Gemm", ["f", "wl", "bl"], ["g"], transB=1, alpha=0.5, beta=2.0),
        node("Softmax", ["g"], ["y"], axis=1),
    ]
    return network(nodes, weights, "y")


def shuffled_network(rng: np.random.Generator) -> ModelProto:
    """Grouped convolution, a channel shuffle, concatenation, folded scales, average pooling of padded borders."""
    weights = _weights(rng, w1=(8, 2, 3, 3), w2=(8, 1, 3, 3), scale=(12,))
    weights["grouped"] = np.array([0, 2, 4, 6, 6], np.int64)
    weights["joined"] = np.array([0, 8, 6, -1], np.int64)
    weights["axes"] = np.array([12], np.int64)
    node = helper.make_node
    nodes = [
        node("Conv", ["image", "w1"], ["c1"], group=2, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", ["c1"], ["r1"]),
        node("Reshape", ["r1", "grouped"], ["g1"]),
        node("Transpose", ["g1"], ["t1"], perm=[0, 2, 1, 3, 4]),
        node("Reshape", ["t1", "joined"], ["j1"]),
        node("Conv", ["j1", "w2"], ["c2"], group=8, kernel_shape=[3, 3], pads=[2, 2, 2, 2], dilations=[2, 2]),
        node("AveragePool", ["image"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Concat", ["c2", "a"], ["k"], axis=1),
        node("Unsqueeze", ["scale"], ["scales"], axes=[1, 2]),
        node("Mul", ["k", "scales"], ["m"]),
        node("Add", ["m", "scales"], ["s"]),
        node("GlobalAveragePool", ["s"], ["p"]),
        node("ConstantOfShape", ["axes"], ["ones"], value=numpy_helper.from_array(np.ones(1, np.float32))),
        node("Unsqueeze", ["ones"], ["columns"], axes=[1, 2]),
        node("Add", ["p", "columns"], ["y"]),
    ]
    return network(nodes, weights, "y")
