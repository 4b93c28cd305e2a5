"""An ONNX model as a bundle: one file that runs with the SDK alone."""

import tempfile
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

from tensorkiln import Client, Program
from tensorkiln.frontends import onnx as importer

ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", 4]) for name in ("x", "y")]
node = helper.make_node("Softmax", ["x"], ["y"], axis=1)
model = importer.load(
    helper.make_model(helper.make_graph([node], "softmax", ends[:1], ends[1:])), symbols={"rows": (1, 64)}
)

with tempfile.TemporaryDirectory() as folder:
    bundle = Path(folder, "softmax.kiln")
    with Client() as client:
        (compiled,) = client.compile_for(model.graph, ["cpu:native"])
        client.save(compiled, bundle)
    program = Program.from_bundle(bundle)
    (symbol,) = (each.name for each in program.compiled.symbols)
    (y,) = program(np.zeros((3, 4), np.float32), **{symbol: 3})
    np.testing.assert_array_equal(y, np.full((3, 4), 0.25, np.float32))
    print(bundle.name, bundle.stat().st_size, "bytes")
