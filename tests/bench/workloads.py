"""The workloads of the benchmark, each as a graph, in NumPy, and as an ONNX model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, parser

from tensorkiln.build import (
    Builder,
    Tensor,
    argmax,
    cast,
    conv2d,
    exp,
    layer_norm,
    matmul,
    relu,
    softmax,
    take,
    transpose,
    var,
)
from tests.networks.light import NAMES

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

ROWS, COLUMNS = 4096, 1024


@dataclass(frozen=True, slots=True)
class Workload:
    """A function of float32 arrays of `shapes`; if `below` is given, the last one has int64 indices below it.

    `onnx` is the body of a model of the inputs a, b, c and the output y.
    """

    name: str
    shapes: tuple[Shape, ...]
    graph: Callable[..., Tensor]
    numpy: Callable[..., Array]
    onnx: str
    below: int = 0

    def arrays(self, seed: int = 0) -> tuple[Array, ...]:
        """Random arguments; the last array holds the indices, if any."""
        rng = np.random.default_rng(seed)
        arrays: list[Array] = [rng.standard_normal(shape, np.float32) for shape in self.shapes]
        if self.below:
            arrays[-1] = rng.integers(0, self.below, self.shapes[-1])
        return tuple(arrays)

    def write(self) -> Builder:
        """The builder of the workload's graph."""
        builder = Builder("workload")
        inputs = [builder.input(array.dtype.name, array.shape) for array in self.arrays()]
        builder.output(self.graph(*inputs))
        return builder

    def model(self) -> ModelProto:
        """The workload as an ONNX model."""
        body = parser.parse_graph(f"g () => () {{ {self.onnx} }}")
        for name, array in zip("abc", self.arrays(), strict=False):
            dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
            body.input.append(helper.make_tensor_value_info(name, dtype, array.shape))
        body.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
        return helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _numpy_softmax(a: Array) -> Array:
    powers = np.exp(a - a.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _numpy_layer_norm(a: Array, scale: Array, bias: Array) -> Array:
    centred = a - a.mean(-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, -1, keepdims=True) + np.float32(1e-5)) * scale + bias


def _numpy_conv(a: Array, weight: Array) -> Array:
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    _, channels, rows, columns, *_ = windows.shape
    seen = windows.transpose(0, 1, 4, 5, 2, 3).reshape(channels * 9, rows * columns)
    return (weight.reshape(len(weight), -1) @ seen).reshape(1, len(weight), rows, columns)


def _square(size: int) -> Workload:
    name = f"matmul {size}"
    return Workload(name, ((size, size), (size, size)), matmul, np.matmul, "y = MatMul(a, b)")


WORKLOADS = (
    Workload("a + b, 16 elements", ((16,), (16,)), lambda a, b: a + b, np.add, "y = Add(a, b)"),
    Workload(
        "relu(a * b + c), 1M",
        ((1 << 20,),) * 3,
        lambda a, b, c: relu(a * b + c),
        lambda a, b, c: np.maximum(a * b + c, np.float32(0)),
        "p = Mul(a, b) s = Add(p, c) y = Relu(s)",
    ),
    Workload(
        "exp(-a * a) * b, 1M",
        ((1 << 20,),) * 2,
        lambda a, b: exp(-a * a) * b,
        lambda a, b: np.exp(-a * a) * b,
        "p = Mul(a, a) n = Neg(p) e = Exp(n) y = Mul(e, b)",
    ),
    Workload("softmax 4096x1024", ((ROWS, COLUMNS),), softmax, _numpy_softmax, "y = Softmax<axis = -1>(a)"),
    Workload(
        "layer norm 4096x1024",
        ((ROWS, COLUMNS), (COLUMNS,), (COLUMNS,)),
        lambda a, scale, bias: layer_norm(a, -1, scale, bias),
        _numpy_layer_norm,
        "y = LayerNormalization<axis = -1, epsilon = 0.00001>(a, b, c)",
    ),
    Workload(
        "row sums 4096x1024",
        ((ROWS, COLUMNS),),
        lambda a: a.sum(1),
        lambda a: a.sum(1),
        "axes = Constant<value_ints = [1]>() y = ReduceSum<keepdims = 0>(a, axes)",
    ),
    Workload(
        "column sums 4096x1024",
        ((ROWS, COLUMNS),),
        lambda a: a.sum(0),
        lambda a: a.sum(0),
        "axes = Constant<value_ints = [0]>() y = ReduceSum<keepdims = 0>(a, axes)",
    ),
    Workload(
        "variances 64x262144",
        ((64, 262144),),
        lambda a: var(a, -1),
        lambda a: a.var(1),
        "m = ReduceMean<axes = [1]>(a) d = Sub(a, m) s = Mul(d, d) y = ReduceMean<axes = [1], keepdims = 0>(s)",
    ),
    Workload(
        "places of maxima 64x131072",
        ((64, 131072),),
        lambda a: cast(argmax(a, -1), "float32"),
        lambda a: a.argmax(1).astype(np.float32),
        "i = ArgMax<axis = 1, keepdims = 0>(a) y = Cast<to = 1>(i)",
    ),
    _square(512),
    _square(1000),
    _square(1024),
    Workload(
        "a @ b.T 512",
        ((512, 512),) * 2,
        lambda a, b: a @ transpose(b),
        lambda a, b: a @ b.T,
        "t = Transpose<perm = [1, 0]>(b) y = MatMul(a, t)",
    ),
    Workload("64 matmuls of 64", ((64, 64, 64),) * 2, matmul, np.matmul, "y = MatMul(a, b)"),
    Workload(
        "attention 8x512x64",
        ((8, 512, 64),) * 3,
        lambda a, b, c: softmax(a @ transpose(b) * 0.125) @ c,
        lambda a, b, c: _numpy_softmax(a @ b.transpose(0, 2, 1) * np.float32(0.125)) @ c,
        "t = Transpose<perm = [0, 2, 1]>(b) p = MatMul(a, t) f = Constant<value_float = 0.125>() s = Mul(p, f) "
        "w = Softmax<axis = -1>(s) y = MatMul(w, c)",
    ),
    Workload(
        "conv 3x3, 64 to 64 of 56x56",
        ((1, 64, 56, 56), (64, 64, 3, 3)),
        lambda a, b: conv2d(a, b, padding=1),
        _numpy_conv,
        "y = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(a, b)",
    ),
    Workload(
        "transpose 2048x2048",
        ((2048, 2048),),
        transpose,
        lambda a: np.ascontiguousarray(a.T),
        "y = Transpose<perm = [1, 0]>(a)",
    ),
    Workload(
        "take 16384 of 32768 rows of 128",
        ((32768, 128), (16384,)),
        take,
        lambda a, b: np.take(a, b, axis=0),
        "y = Gather<axis = 0>(a, b)",
        below=32768,
    ),
)
"""Bodies in ONNX's textual syntax; the inputs of a graph are the arguments of its functions."""

NETWORKS = NAMES
