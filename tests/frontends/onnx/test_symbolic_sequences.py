"""Recurrent operators over any number of steps, and the products of their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tensorkiln.frontends.composed.recurrence import UNROLLED
from tensorkiln.frontends.model import Model
from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled
from tests.frontends.onnx.single_nodes import of_nodes

Array = np.ndarray[Any, Any]
HIDDEN, INPUTS, BATCH = 8, 3, 2
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def imported(
    op: str, steps: int | str, direction: str = "forward", *, has_lengths: bool = False, **attributes: Any
) -> tuple[Model, dict[str, Array]]:
    """The model of a node, and its inputs, with 7 steps if their number is a symbol."""
    random = np.random.default_rng(1)
    sides, gates = 2 if direction == "bidirectional" else 1, GATES[op] * HIDDEN
    shapes = {"w": (gates, INPUTS), "r": (gates, HIDDEN), "b": (2 * gates,)}
    shapes |= {"p": (3 * HIDDEN,)} if op == "LSTM" else {}
    weights = {name: random.normal(size=(sides, *shape)).astype(np.float32) / 2 for name, shape in shapes.items()}
    count = steps if isinstance(steps, int) else 7
    inputs: dict[str, Array] = {"x": random.normal(size=(max(count, 7), BATCH, INPUTS)).astype(np.float32)[:count]}
    if has_lengths:
        inputs["lengths"] = np.array([count, 1], np.int32)
    names = ["y", "last", *(["cell"] if op == "LSTM" else [])]
    taken = ["x", "w", "r", "b", "lengths" if has_lengths else "", *(["", "", "p"] if op == "LSTM" else [])]
    node = helper.make_node(op, taken, names, hidden_size=HIDDEN, direction=direction, **attributes)
    proto = of_nodes([node], inputs, weights)
    if isinstance(steps, str):
        proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = steps
    del proto.graph.output[:]
    proto.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    return load(proto, symbols={steps: (1, 64)} if isinstance(steps, str) else {}), inputs


@pytest.mark.parametrize("has_lengths", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", GATES)
def test_any_number_of_steps_gives_what_as_many_known_ones_give(op: str, direction: str, has_lengths: bool) -> None:
    any_number, _ = imported(op, "steps", direction, has_lengths=has_lengths)
    for steps in (1, 7):
        known, inputs = imported(op, steps, direction, has_lengths=has_lengths)
        expected = evaluate(known.graph, *known.arguments(**inputs))
        found = evaluate(any_number.graph, *any_number.arguments(**inputs), steps=steps)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, 1e-5, 1e-6)


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_long_sequence_of_known_steps_is_a_loop(is_reversed: bool) -> None:
    direction = "reverse" if is_reversed else "forward"
    for steps, is_loop in ((UNROLLED, False), (UNROLLED + 1, True)):
        model, inputs = imported("LSTM", steps, direction, has_lengths=True)
        assert any(node.node == "while" for node in model.graph.nodes) == is_loop
        any_number, _ = imported("LSTM", "steps", direction, has_lengths=True)
        found = evaluate(model.graph, *model.arguments(**inputs))
        expected = evaluate(any_number.graph, *any_number.arguments(**inputs), steps=steps)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, 1e-5, 1e-6)


@pytest.mark.parametrize("steps", [5, UNROLLED + 1, "steps"])
@pytest.mark.parametrize(
    ("op", "attributes"),
    [("RNN", {"clip": 0.5}), ("GRU", {}), ("GRU", {"linear_before_reset": 1}), ("LSTM", {})],
)
def test_compiled_steps_give_what_the_reference_gives(op: str, attributes: dict[str, Any], steps: int | str) -> None:
    model, inputs = imported(op, steps, "bidirectional", has_lengths=True, **attributes)
    symbols = {"steps": 7} if isinstance(steps, str) else {}
    arrays = model.arguments(**inputs)
    found = checked.run(compiled(model.graph), *arrays, threads=2, **symbols)
    for one, other in zip(found, evaluate(model.graph, *arrays, **symbols), strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)


@pytest.mark.parametrize(("op", "attributes"), [("RNN", {}), ("GRU", {"linear_before_reset": 1}), ("LSTM", {})])
def test_the_inputs_of_all_steps_are_one_product(op: str, attributes: dict[str, Any]) -> None:
    model, _ = imported(op, 6, **attributes)
    products = [node for node in model.graph.nodes if node.node == "reduce_axis"]
    assert len(products) == 1 + 6
