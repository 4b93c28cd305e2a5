"""Write `tests/frontends/meeting/files`: three networks as ONNX, JAX and torch have them, and what two of these give.

By hand, in environments that have each of the packages; they are no dependencies of the project. From the root of a
checkout:

    PYTHONPATH=client:. python -m tests.frontends.meeting.export onnx
    PYTHONPATH=client:. python -m tests.frontends.meeting.export jax    # jax 0.10.2
    PYTHONPATH=client:. python -m tests.frontends.meeting.export torch  # torch 2.13.0
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.frontends.meeting.networks import FILES, HEADS, SHAPES, WIDTH, drawn


def _onnx() -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    node = helper.make_node

    def save(name: str, nodes: list[Any], result: tuple[int, ...], **tables: list[int]) -> None:
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPES[name])]
        found = [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)]
        arrays = drawn(name)[1] | {each: np.array(table) for each, table in tables.items()}
        weights = [numpy_helper.from_array(array, each) for each, array in arrays.items()]
        graph = helper.make_graph(nodes, name, given, found, weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        onnx.checker.check_model(model)
        (FILES / f"{name}.onnx").write_bytes(model.SerializeToString(deterministic=True))

    first = node("Gemm", ["x", "w1", "b1"], ["a"], transB=1)
    save("mlp", [first, node("Relu", ["a"], ["r"]), node("Gemm", ["r", "w2", "b2"], ["y"], transB=1)], (6, 4))
    pooled = node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2])
    convolved = [node("Conv", ["x", "kernel", "shift"], ["c"], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["r"]), pooled]
    head = [
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", "w", "b"], ["l"], transB=1),
        node("Softmax", ["l"], ["y"]),
    ]
    save("convnet", [*convolved, *head], (2, 5))
    factor = numpy_helper.from_array(np.asarray(np.float32((WIDTH // HEADS) ** -0.5)))
    nodes = [node("LayerNormalization", ["x", "scale1", "shift1"], ["h"]), node("Constant", [], ["root"], value=factor)]
    for each in "qkv":
        nodes.append(node("MatMul", ["h", f"w{each}"], [f"{each}0"]))
        nodes.append(node("Reshape", [f"{each}0", "heads"], [f"{each}1"]))
        nodes.append(node("Transpose", [f"{each}1"], [each], perm=[0, 2, 1, 3]))
    nodes += [node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), node("MatMul", ["q", "kt"], ["s"])]
    nodes += [node("Mul", ["s", "root"], ["t"]), node("Softmax", ["t"], ["a"]), node("MatMul", ["a", "v"], ["o"])]
    nodes += [node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]), node("Reshape", ["ot", "joined"], ["oj"])]
    nodes += [node("MatMul", ["oj", "wo"], ["ow"]), node("Add", ["x", "ow"], ["x2"])]
    nodes += [node("LayerNormalization", ["x2", "scale2", "shift2"], ["h2"]), node("MatMul", ["h2", "w1"], ["m1"])]
    nodes += [node("Add", ["m1", "b1"], ["m2"]), node("Relu", ["m2"], ["m3"]), node("MatMul", ["m3", "w2"], ["m4"])]
    nodes += [node("Add", ["m4", "b2"], ["m5"]), node("Add", ["x2", "m5"], ["y"])]
    save("block", nodes, SHAPES["block"], heads=[2, 5, HEADS, WIDTH // HEADS], joined=list(SHAPES["block"]))


def _jax() -> None:
    import jax
    from jax import export, lax
    from jax import numpy as jnp

    def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        return jax.nn.relu(x @ w1.T + b1) @ w2.T + b2

    def convnet(x: Any, kernel: Any, shift: Any, w: Any, b: Any) -> Any:
        y = lax.conv_general_dilated(x, kernel, (1, 1), ((1, 1), (1, 1))) + shift[None, :, None, None]
        y = lax.reduce_window(jax.nn.relu(y), -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return jax.nn.softmax(y.reshape(y.shape[0], -1) @ w.T + b, -1)

    def normalized(x: Any, scale: Any, shift: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift

    def block(
        x: Any, scale1: Any, shift1: Any, wq: Any, wk: Any, wv: Any, wo: Any, scale2: Any, shift2: Any, *rest: Any
    ) -> Any:
        w1, b1, w2, b2 = rest
        batch, length, _ = x.shape
        h = normalized(x, scale1, shift1)
        q, k, v = ((h @ w).reshape(batch, length, HEADS, -1).transpose(0, 2, 1, 3) for w in (wq, wk, wv))
        weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) * (WIDTH // HEADS) ** -0.5, -1)
        x = x + (weights @ v).transpose(0, 2, 1, 3).reshape(x.shape) @ wo
        return x + (jax.nn.relu(normalized(x, scale2, shift2) @ w1 + b1) @ w2 + b2)

    for name, function in {"mlp": mlp, "convnet": convnet, "block": block}.items():
        x, parameters = drawn(name)
        arrays = [x, *parameters.values()]
        specs = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arrays]
        exported = export.export(jax.jit(function), platforms=["cpu"])(*specs)
        (FILES / f"{name}.jax").write_bytes(exported.serialize())
        np.save(FILES / f"{name}.jax.npy", np.asarray(function(*arrays)))


def _torch() -> None:
    import torch
    from torch.nn import functional

    class Network(torch.nn.Module):
        def __init__(self, name: str, forward: Callable[[Any, Any], Any]) -> None:
            super().__init__()
            self._of = forward
            for each, array in drawn(name)[1].items():
                setattr(self, each, torch.nn.Parameter(torch.tensor(array)))

        def forward(self, x: Any) -> Any:
            return self._of(self, x)

    def mlp(p: Any, x: Any) -> Any:
        return functional.linear(torch.relu(functional.linear(x, p.w1, p.b1)), p.w2, p.b2)

    def convnet(p: Any, x: Any) -> Any:
        y = functional.max_pool2d(torch.relu(functional.conv2d(x, p.kernel, p.shift, padding=1)), 2)
        return torch.softmax(functional.linear(y.flatten(1), p.w, p.b), -1)

    def block(p: Any, x: Any) -> Any:
        batch, length, width = x.shape
        h = functional.layer_norm(x, (WIDTH,), p.scale1, p.shift1)
        q, k, v = ((h @ w).view(batch, length, HEADS, -1).transpose(1, 2) for w in (p.wq, p.wk, p.wv))
        weights = torch.softmax(q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5, -1)
        x = x + (weights @ v).transpose(1, 2).reshape(batch, length, width) @ p.wo
        h = functional.layer_norm(x, (WIDTH,), p.scale2, p.shift2)
        return x + (torch.relu(h @ p.w1 + p.b1) @ p.w2 + p.b2)

    for name, forward in {"mlp": mlp, "convnet": convnet, "block": block}.items():
        module, x = Network(name, forward).eval(), torch.tensor(drawn(name)[0])
        exported = torch.export.export(module, (x,)).run_decompositions()
        torch.export.save(exported, FILES / f"{name}.pt2")
        np.save(FILES / f"{name}.torch.npy", module(x).detach().numpy())


if __name__ == "__main__":
    {"onnx": _onnx, "jax": _jax, "torch": _torch}[sys.argv[1]]()
