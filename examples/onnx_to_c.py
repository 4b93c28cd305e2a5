"""An ONNX model as a bundle, and the bundle as a C program: it needs neither Python nor the SDK when it runs.

The program is for one size of each symbol, because a C array has a fixed size. Needs a C compiler as `cc`.
"""

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tensorkiln import Client, Graph
from tensorkiln.bundle import read_bundle
from tensorkiln.expr import evaluate
from tensorkiln.frontends import onnx as importer

ROWS = 3
weights = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", size]) for name, size in (("x", 4), ("y", 6))]
nodes = [helper.make_node("MatMul", ["x", "w"], ["z"]), helper.make_node("Softmax", ["z"], ["y"], axis=1)]
proto = helper.make_model(
    helper.make_graph(nodes, "scores", ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")])
)
model = importer.load(proto, symbols={"rows": (1, 64)})


def c_array(name: str, content: bytes) -> str:
    return f"static const _Alignas(64) unsigned char {name}[] = {{{', '.join(map(str, content))}}};"


def c_program(bundle: Path, symbols: dict[str, int], constants: dict[int, bytes]) -> tuple[str, bytes]:
    """The source of a program that reads its inputs from stdin and writes its outputs, and the object to link with it.

    `constants` has the bytes of the inputs that stay the same, by their position.
    """
    loaded = read_bundle(bundle)
    program = loaded.program
    lines = ["#include <stdint.h>", "#include <stdio.h>"]
    # Buffers of one storage are windows of one array.
    sizes: dict[tuple[str, int], int] = {}
    for buffer in program.buffers:
        if buffer.role != "constant":
            end = evaluate(buffer.offset, symbols) + evaluate(buffer.size_bytes, symbols)
            sizes[buffer.storage] = max(sizes.get(buffer.storage, 1), end)
    lines += [f"static _Alignas(64) unsigned char {kind}_{at}[{size}];" for (kind, at), size in sizes.items()]
    address: dict[int, str] = {}
    for buffer in program.buffers:
        if buffer.artifact is not None:
            address[buffer.id] = f"constant_{buffer.id}"
            lines.append(c_array(address[buffer.id], loaded.artifacts[buffer.artifact]))
        else:
            address[buffer.id] = "{}_{} + {}".format(*buffer.storage, evaluate(buffer.offset, symbols))
    for at, content in constants.items():
        address[program.inputs[at].buffer] = f"input_{at}"
        lines.append(c_array(f"input_{at}", content))
    entries = sorted({kernel.entry for kernel in program.kernels})
    lines += [f"void {entry}(void *const *, const int64_t *, int64_t, int64_t);" for entry in entries]
    lines.append("int main(void) {")
    for at, binding in enumerate(program.inputs):
        size = evaluate(program.buffers[binding.buffer].size_bytes, symbols)
        if at not in constants:
            lines.append(f"  if (fread({address[binding.buffer]}, 1, {size}, stdin) != {size}) return 1;")
    for item in program.schedule.items:
        assert item.operation.op == "kernel", "copies and callbacks are of the SDK"
        kernel = program.kernels[item.operation.kernel_id]
        groups, *_ = kernel.launch_dims(symbols).global_size
        pointers = ", ".join(f"(void *)({address[buffer]})" for buffer in kernel.buffers)
        values = ", ".join(str(symbols[name]) for name in kernel.var_names) or "0"
        lines.append(f"  {kernel.entry}((void *const[]){{{pointers}}}, (const int64_t[]){{{values}}}, 0, {groups});")
    for binding in program.outputs:
        size = evaluate(program.buffers[binding.buffer].size_bytes, symbols)
        lines.append(f"  fwrite({address[binding.buffer]}, 1, {size}, stdout);")
    lines += ["  return 0;", "}"]
    (code,) = {kernel.artifact or "" for kernel in program.kernels}
    return "\n".join(lines) + "\n", loaded.artifacts[code]


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    # As an input like any other, the weight is an array of the C program.
    graph = Graph.model_validate({**model.graph.model_dump(mode="json", by_alias=True), "parameter_vars": []})
    with Client() as client:
        (compiled,) = client.compile_for(graph, ["cpu:native"])
        client.save(compiled, folder / "scores.kiln")
    (symbol,) = (each.name for each in compiled.symbols)
    source, code = c_program(folder / "scores.kiln", {symbol: ROWS}, {1: weights.tobytes()})
    (folder / "scores.c").write_text(source)
    (folder / "scores.o").write_bytes(code)
    subprocess.run(["cc", "-std=c11", "scores.c", "scores.o", "-o", "scores"], cwd=folder, check=True)
    x = np.random.default_rng(0).standard_normal((ROWS, 4), np.float32)
    done = subprocess.run([os.fspath(folder / "scores")], input=x.tobytes(), capture_output=True, check=True)
    y = np.frombuffer(done.stdout, np.float32).reshape(ROWS, 6)

expected = np.exp(x @ weights)
np.testing.assert_allclose(y, expected / expected.sum(1, keepdims=True), rtol=1e-5)
print(len(source.splitlines()), "lines of C give", y.shape)
