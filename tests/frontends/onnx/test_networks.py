"""Whole networks: the nine that the onnx package ships, and its models exported from PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate
from tests.frontends.onnx.reference_operators import LRN, BatchNormalization
from tests.frontends.onnx.small_networks import residual_network, shuffled_network

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"

NODES_AND_PARAMETERS = {
    "bvlc_alexnet": (144, 16),
    "densenet121": (3230, 606),
    "inception_v1": (879, 116),
    "inception_v2": (1871, 347),
    "resnet50": (994, 161),
    "shufflenet": (987, 150),
    "squeezenet": (391, 52),
    "vgg19": (274, 38),
    "zfnet512": (136, 16),
}


@pytest.mark.parametrize("name", NODES_AND_PARAMETERS)
def test_a_network_imports_as_a_valid_graph_of_its_one_input(name: str):
    path = DATA / "light" / f"light_{name}.onnx"
    model = load(path)
    nodes, parameters = NODES_AND_PARAMETERS[name]
    assert (len(model.graph.nodes), len(model.parameters)) == (nodes, parameters)
    assert not model.graph.constraints
    ((image, first),) = model.inputs.items()
    assert model.graph.types[first].shape == (1, 3, 224, 224)
    assert model.graph.input_vars == (first, *model.parameters)
    for var, array in model.parameters.items():
        assert model.graph.types[var].shape == array.shape
        assert array.flags.c_contiguous
    ((result, last),) = model.outputs.items()
    assert model.graph.types[last].shape == _array(path.with_name(f"light_{name}_output_0.pb")).shape
    proto = onnx.load(path)
    assert {image} <= {entry.name for entry in proto.graph.input}
    assert [result] == [entry.name for entry in proto.graph.output]


@pytest.mark.parametrize("path", sorted(DATA.glob("pytorch-*/*")), ids=lambda path: path.name)
def test_a_model_exported_from_pytorch_gives_its_expected_outputs(path: Path):
    model = load(path / "model.onnx")
    inputs = [_array(file) for file in sorted(path.glob("test_data_set_0/input_*.pb"))]
    expected = [_array(file) for file in sorted(path.glob("test_data_set_0/output_*.pb"))]
    actual = evaluate(model.graph, *model.arguments(**dict(zip(model.inputs, inputs, strict=True))))
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("network", [residual_network, shuffled_network])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_small_network_with_random_weights_agrees_with_onnxs_own_evaluator(network: Any, batch: int):
    rng = np.random.default_rng(0)
    proto = network(rng)
    image = rng.standard_normal((batch, 4, 12, 12)).astype(np.float32)
    expected: Any
    (expected,) = ReferenceEvaluator(proto, new_ops=[BatchNormalization, LRN]).run(None, {"image": image})
    model = load(proto, symbols={"batch": (1, 8)})
    assert list(model.graph.symbols.items()) == [("batch", (1, 8))]
    (actual,) = evaluate(model.graph, *model.arguments(image=image), batch=batch)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)
    fixed = load(proto, symbols={"batch": batch})
    (actual,) = evaluate(fixed.graph, *fixed.arguments(image=image))
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)


def _array(path: Path) -> np.ndarray[Any, Any]:
    tensor = TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)
