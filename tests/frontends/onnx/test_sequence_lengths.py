"""Sequences of a batch that are shorter than others: each gives what it gives alone, then zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate
from tests.frontends.onnx.single_nodes import of_nodes

Array = np.ndarray[Any, Any]
HIDDEN, LENGTHS = 3, np.array([4, 1, 2], np.int32)


def _outputs(op: str, direction: str, weights: dict[str, Array], inputs: dict[str, Array]) -> tuple[Array, ...]:
    names = ["y", "last", *(["cell"] if op == "LSTM" else [])]
    taken = ["x", "w", "r", "b", "lengths" if "lengths" in inputs else ""]
    proto = of_nodes([helper.make_node(op, taken, names, hidden_size=HIDDEN, direction=direction)], inputs, weights)
    del proto.graph.output[:]
    proto.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    model = load(proto)
    return evaluate(model.graph, *model.arguments(**inputs))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_a_shorter_sequence_gives_what_it_gives_alone(op: str, gates: int, direction: str):
    random = np.random.default_rng(0)
    sides = 2 if direction == "bidirectional" else 1
    shapes = {"w": (gates * HIDDEN, 2), "r": (gates * HIDDEN, HIDDEN), "b": (2 * gates * HIDDEN,)}
    weights = {name: random.normal(size=(sides, *shape)).astype(np.float32) for name, shape in shapes.items()}
    x = random.normal(size=(4, 3, 2)).astype(np.float32)
    y, *last = _outputs(op, direction, weights, {"x": x, "lengths": LENGTHS})
    for place, length in enumerate(LENGTHS.tolist()):
        alone, *states = _outputs(op, direction, weights, {"x": x[:length, place : place + 1]})
        np.testing.assert_allclose(y[:length, :, place], alone[:, :, 0], rtol=1e-5, atol=1e-6)
        assert not y[length:, :, place].any()
        for ours, theirs in zip(last, states, strict=True):
            np.testing.assert_allclose(ours[:, place], theirs[:, 0], rtol=1e-5, atol=1e-6)
