"""Random numbers: the same for the same key, others for another, and distributed as they are asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.frontends.model import Model
from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled

Array = np.ndarray[Any, Any]
MANY = 4000


def _model(nodes: Sequence[NodeProto], inputs: Mapping[str, Array] | None = None) -> Model:
    graph = helper.make_graph(
        list(nodes),
        "drawn",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), ["n", *array.shape[1:]])
            for name, array in (inputs or {}).items()
        ],
        [helper.make_tensor_value_info(node.output[0], TensorProto.UNDEFINED, None) for node in nodes],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    return load(proto, symbols={"n": (1, MANY)} if inputs else None)


def _drawn(model: Model, key: int, /, **inputs: Array) -> tuple[Array, ...]:
    symbols = {name: len(next(iter(inputs.values()))) for name in model.graph.symbols}
    return evaluate(model.graph, *model.arguments(**inputs, random_key=np.asarray(key, np.uint64)), **symbols)


def test_a_key_gives_the_same_numbers_again_and_every_node_has_others():
    nodes = [helper.make_node("RandomUniform", [], [name], shape=[MANY], low=2.0, high=4.0) for name in "ab"]
    model = _model(nodes)
    assert list(model.inputs) == ["random_key"]
    first, second = _drawn(model, 7)
    np.testing.assert_array_equal(_drawn(model, 7), (first, second))
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, _drawn(model, 8)[0])
    assert 2 <= first.min() < first.mean() - 0.9
    assert first.max() < 4
    assert abs(first.mean() - 3) < 0.05


def test_a_seed_needs_no_key():
    node = helper.make_node("RandomNormal", [], ["y"], shape=[MANY], mean=1.0, scale=2.0, seed=5.0)
    other = helper.make_node("RandomNormal", [], ["z"], shape=[MANY], mean=1.0, scale=2.0, seed=6.0)
    model = _model([node, other])
    assert not model.inputs
    first, second = evaluate(model.graph)
    assert not np.array_equal(first, second)
    assert abs(first.mean() - 1) < 0.15
    assert abs(first.std() - 2) < 0.1


def test_numbers_like_an_input_have_its_shape_and_the_type_that_is_asked_for():
    x = np.zeros((MANY, 2), np.float32)
    model = _model(
        [
            helper.make_node("RandomNormalLike", ["x"], ["y"], dtype=TensorProto.DOUBLE),
            helper.make_node("RandomUniformLike", ["x"], ["z"]),
        ],
        {"x": x},
    )
    normal, uniform = _drawn(model, 1, x=x)
    assert (normal.dtype, normal.shape, uniform.dtype) == (np.float64, x.shape, np.float32)
    assert abs(normal.std() - 1) < 0.05


def test_flags_and_classes_come_as_often_as_they_should():
    chance = np.full((MANY, 1), 0.25, np.float32)
    (flags,) = _drawn(_model([helper.make_node("Bernoulli", ["p"], ["y"], dtype=9)], {"p": chance}), 3, p=chance)
    assert flags.dtype == np.bool_
    assert abs(flags.mean() - 0.25) < 0.03
    shares = np.array([0.5, 0.0, 0.2, 0.3])
    with np.errstate(divide="ignore"):
        logits = np.log(shares).astype(np.float32)[None] + 3
    model = _model([helper.make_node("Multinomial", ["p"], ["y"], sample_size=MANY, dtype=7)], {"p": logits})
    (classes,) = _drawn(model, 3, p=logits)
    assert (classes.dtype, classes.shape) == (np.int64, (1, MANY))
    assert np.abs(np.bincount(classes[0], minlength=4) / MANY - shares).max() < 0.03


@pytest.mark.parametrize("least", [-1000.0, -math.inf])
def test_a_class_that_cannot_be_is_not_drawn_by_the_greatest_number_below_one(least: float):
    # The 90173rd number under this seed is 1 - 2^-24.
    logits = np.full((1, 1000), least, np.float32)
    logits[0, 0] = 0
    model = _model([helper.make_node("Multinomial", ["p"], ["y"], sample_size=91, seed=12.0)], {"p": logits})
    arguments = model.arguments(p=logits)
    assert not evaluate(model.graph, *arguments, n=1)[0].any()
    if least == -1000:
        assert not checked.run(compiled(model.graph), *arguments, n=1)[0].any()


def test_uniform_numbers_stay_below_the_end_that_is_left_out():
    nodes = [
        helper.make_node(*("RandomUniform", [], [name]), shape=[3 * MANY], low=2.0, high=high, seed=1.0, dtype=kind)
        for name, high, kind in (("a", 4.0, TensorProto.FLOAT16), ("b", 2.0009, TensorProto.FLOAT16))
    ]
    first, second = evaluate(_model(nodes).graph)
    assert 2 <= first.min() < 2.01 < 3.99 < first.max() < 4
    assert set(second.tolist()) == {2.0}


def test_uniform_numbers_of_a_wider_range_than_their_type_has_are_refused():
    node = helper.make_node("RandomUniform", [], ["y"], shape=[3], low=-3e38, high=3e38)
    with pytest.raises(UnsupportedGraphError, match="wider range than float32 has numbers"):
        _model([node])


@pytest.mark.parametrize("ratio", [0.25, None])
def test_dropout_in_training_drops_and_scales(ratio: float | None):
    x = np.ones((MANY, 1), np.float32)
    nodes = [
        helper.make_node("Constant", [], ["t"], value=helper.make_tensor("t", TensorProto.BOOL, [], [True])),
        helper.make_node("Constant", [], ["r"], value_float=ratio or 0.0),
        helper.make_node("Dropout", ["x", "r" if ratio else "", "t"], ["y", "m"]),
    ]
    model = load(
        helper.make_model(
            helper.make_graph(
                nodes,
                "trained",
                [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in "ym"],
            ),
            opset_imports=[helper.make_opsetid("", 22)],
            ir_version=10,
        )
    )
    result, kept = _drawn(model, 2, x=x)
    share = 1 - (ratio or 0.5)
    assert abs(kept.mean() - share) < 0.03
    np.testing.assert_allclose(result, np.where(kept, 1 / share, 0), rtol=1e-6)


def test_compiled_code_draws_the_numbers_of_the_reference():
    x = np.zeros((5, 3), np.float32)
    model = _model([helper.make_node(f"Random{name}Like", ["x"], [name]) for name in ("Uniform", "Normal")], {"x": x})
    expected = _drawn(model, 11, x=x)
    actual = checked.run(compiled(model.graph), *model.arguments(x=x, random_key=np.asarray(11, np.uint64)), n=5)
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_an_input_of_the_name_of_the_key_is_refused():
    x = np.zeros((5, 3), np.float32)
    with pytest.raises(UnsupportedGraphError, match="'random_key', as the key of random numbers is"):
        _model([helper.make_node("RandomUniformLike", ["random_key"], ["y"])], {"random_key": x})
