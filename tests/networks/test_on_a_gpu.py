"""Whole networks for a GPU: their launches and code, and one of them run in the emulator."""

from __future__ import annotations

import re

import numpy as np
import pytest
from onnx import ModelProto

from tensorkiln.frontends.onnx import load
from tests.compiled import compiled
from tests.emulated import Emulation
from tests.networks.light import logits, shipped, with_random_weights
from tests.networks.schedules import check_edges, check_items

SIDE = 35
"""Rows and columns of the small image: what comes in, after pooling thrice, is still more than a point."""


def test_a_network_computes_on_a_gpu_what_onnx_says() -> None:
    proto = _with_small_image(with_random_weights(shipped("squeezenet")))
    model = load(proto)
    compilation = compiled(model.graph, "cuda:sm_90", texts=["translate"])
    check_items(compilation.program, len(model.graph.nodes))
    check_edges(compilation.program.schedule)
    image = np.random.default_rng(1).standard_normal((1, 3, SIDE, SIDE), np.float32)
    arrays = [model.parameters.get(var, image) for var in model.graph.input_vars]
    *_, actual = Emulation(compilation, arrays, {}).run()
    expected = logits(proto, image)
    assert expected.std() > 0.05, "logits that are all alike would show no error"
    np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


def _with_small_image(proto: ModelProto) -> ModelProto:
    given = {tensor.name for tensor in proto.graph.initializer}
    (image,) = (entry for entry in proto.graph.input if entry.name not in given)
    for dim in image.type.tensor_type.shape.dim[2:]:
        dim.dim_value = SIDE
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    return proto


@pytest.mark.parametrize("name", ["squeezenet", "resnet50"])
def test_texts_of_a_network_have_each_kernel_once_and_its_values_in_registers(name: str) -> None:
    compilation = compiled(load(shipped(name)).graph, "cuda:sm_90")
    entries: dict[str, set[str]] = {}
    for kernel in compilation.program.kernels:
        entries.setdefault(str(kernel.artifact), set()).add(kernel.entry)
    assert len(entries) > 1
    for digest, names in entries.items():
        ptx = compilation.artifacts[digest].decode()
        assert set(re.findall(r"\.visible \.entry (\w+)\(", ptx)) == names
        assert ".local" not in ptx
