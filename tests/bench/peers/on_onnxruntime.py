"""The rows as ONNX models in ONNX Runtime, and the networks; with the variant `constant`, weights are in the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from tests.bench.peers.engine import Compile, Engine, Task, row_of

CHAIN = (
    "l = Constant<value_float = 0.6931471805599453>() h = Constant<value_float = 0.5>() "
    "o = Constant<value_float = 1.0>() z = Constant<value_float = 0.0>() "
    "s = Mul(a, l) e = Exp(s) p = Mul(e, h) m = Abs(a) r = Sqrt(m) u = Add(p, r) q = Mul(a, a) v = Sub(q, o) "
    "g = Greater(a, z) y = Where(g, u, v)"
)
PRODUCT = "y = MatMul(a, b)"

ROWS = {
    "E1_1M": CHAIN,
    "E1_16M": CHAIN,
    "E2": "s = Add(a, b) y = Relu(s)",
    "R1": "n = Constant<value_ints = [1]>() y = ReduceSum<keepdims = 0>(a, n)",
    "R2": "n = Constant<value_ints = [0]>() y = ReduceSum<keepdims = 0>(a, n)",
    "R3": "y = ReduceSum<keepdims = 0>(a)",
    "S1": "y = Softmax<axis = -1>(a)",
    "L1": "y = LayerNormalization<axis = -1, epsilon = 0.00001>(a, b, c)",
    **dict.fromkeys(("M1_512", "M1_1024", "M1_2048", "M2", "M3"), PRODUCT),
    "P1": "s = Gemm(a, b, c) r = Relu(s) t = Gemm(r, d, e) y = Softmax<axis = -1>(t)",
    "A1": "t = Transpose<perm = [0, 1, 3, 2]>(b) p = MatMul(a, t) f = Constant<value_float = 8.0>() s = Div(p, f) "
    "w = Softmax<axis = -1>(s) y = MatMul(w, c)",
    "C1": "y = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(a, b)",
    "T1": "y = Transpose<perm = [1, 0]>(a)",
    "G1": "y = Gather<axis = 0>(a, b)",
    "O1": "y = Add(a, b)",
}
"""Bodies in ONNX's textual syntax, of the inputs a, b, c, d, e and the output y."""


def model(task: Task, constants: dict[int, Any]) -> ModelProto:
    """The model of a row, with constants as initializers."""
    body = parser.parse_graph(f"g () => () {{ {row_of(ROWS, task, 'is not written in ONNX')} }}")
    for place, (name, array) in enumerate(zip("abcde", task.inputs, strict=False)):
        if place in constants:
            body.initializer.append(numpy_helper.from_array(constants[place], name))
        else:
            dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
            body.input.append(helper.make_tensor_value_info(name, dtype, array.shape))
    body.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def engine(cores: int, variant: str) -> Engine:
    """ONNX Runtime on `cores` threads, with all optimizations."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = cores, 1
    options.log_severity_level = 3

    def session(content: str | bytes) -> Any:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def write(task: Task) -> Compile:
        def compile_row(constants: Any) -> Any:
            if task.model is not None:
                names, ready = list(task.names), session(str(task.model))
            else:
                names = [name for place, name in enumerate("abcde"[: len(task.inputs)]) if place not in constants]
                ready = session(model(task, constants).SerializeToString())
            return lambda *inputs: ready.run(None, dict(zip(names, inputs, strict=True)))

        return compile_row

    return Engine(onnxruntime.__version__, write, outputs=lambda results: [np.asarray(each) for each in results])
