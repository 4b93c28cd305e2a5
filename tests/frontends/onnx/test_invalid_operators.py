"""What ONNX does not allow is refused, also where the graph could make something of it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper

from tensorkiln.errors import InvalidGraphError, TensorkilnError, UnsupportedGraphError
from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate
from tests.frontends.onnx.single_nodes import assert_agrees, of_nodes

ROW = np.arange(6, dtype=np.float32)
MATRIX = np.ones((2, 3), np.float32)
IMAGE = np.ones((1, 1, 4), np.float32)
INTEGERS = np.array([1, 2], np.int32)
BYTES = np.array([1, 200], np.uint8)


@pytest.mark.parametrize(
    ("op", "arrays", "attributes", "message"),
    [
        ("Pad", [ROW, np.array([-8, 4])], {}, "8 and 0 elements are cut from a dimension of 6"),
        ("Pad", [ROW, np.array([-4, -4])], {}, "cut"),
        ("Pad", [MATRIX, np.array([1, 1]), np.float32(0), np.array([2])], {}, "out of range"),
        ("Pad", [ROW, np.array([1, 1])], {"mode": "mirror"}, "mode 'mirror' is not one of"),
        ("LayerNormalization", [MATRIX, np.ones(3, np.float32)], {"axis": 5}, "axis 5"),
        ("LayerNormalization", [np.ones((1, 3), np.float32), MATRIX], {}, "does not broadcast"),
        ("InstanceNormalization", [IMAGE, np.ones(5, np.float32), np.ones(5, np.float32)], {}, "does not broadcast"),
        ("BatchNormalization", [IMAGE, *[np.ones(5, np.float32)] * 4], {}, "does not broadcast"),
        ("BatchNormalization", [IMAGE, *[np.ones((1, 1), np.float32)] * 4], {}, "one entry a channel"),
        ("BitShift", [BYTES, BYTES], {"direction": "UP"}, "direction 'UP'"),
        ("Gelu", [ROW], {"approximate": "foo"}, "approximate 'foo'"),
        ("Einsum", [MATRIX, MATRIX, MATRIX], {"equation": "ij,kj->ik"}, "the axes of 3 operands"),
        ("Not", [INTEGERS], {}, "input 0 is a tensor"),
        ("And", [INTEGERS, INTEGERS], {}, "input 0 is a tensor"),
        ("Relu", [ROW, ROW], {}, "2 inputs are given, at most 1"),
        ("Gemm", [MATRIX, MATRIX.T, np.ones((1, 1, 2), np.float32)], {}, "does not broadcast"),
        ("Gemm", [MATRIX[:1], MATRIX.T, np.ones((5, 2), np.float32)], {}, "does not broadcast"),
        ("PRelu", [ROW[:1], ROW], {}, "does not broadcast"),
        ("Expand", [MATRIX[:, :1], np.array([-1, 3])], {}, "negative dimension"),
        ("MaxPool", [IMAGE], {"kernel_shape": [2], "auto_pad": "SAME"}, "auto_pad 'SAME'"),
        ("Split", [ROW[:5]], {"num_outputs": 4}, "does not split"),
    ],
)
def test_nodes_that_violate_onnx_are_refused(op: str, arrays: list[Any], attributes: dict[str, Any], message: str):
    named = {f"in{place}": np.asarray(array) for place, array in enumerate(arrays)}
    first = {"in0": named.pop("in0")}
    proto = of_nodes([helper.make_node(op, [*first, *named], ["y"], name="it", **attributes)], first, named)
    with pytest.raises(TensorkilnError, match=f"{op} it: .*{message}") as caught:
        load(proto)
    assert caught.value.code in ("graph.invalid", "graph.unsupported")


def test_an_operator_that_the_opset_does_not_have_is_refused():
    with pytest.raises(UnsupportedGraphError, match="Gelu #0: opset 9 does not have"):
        load(of_nodes([helper.make_node("Gelu", ["x"], ["y"])], {"x": ROW}, opset=9))


@pytest.mark.parametrize("shape", [(), (1,), (2,), (3, 1), (1, 2), (3, 2)])
def test_the_third_operand_of_a_gemm_broadcasts_to_the_product(shape: tuple[int, ...]):
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    weights = {"w": x[:2], "c": np.full(shape, 0.5, np.float32)}
    assert_agrees(of_nodes([helper.make_node("Gemm", ["x", "w", "c"], ["y"], transB=1)], {"x": x}, weights), {"x": x})


def test_a_pad_that_may_cut_too_much_is_refused_when_it_does():
    proto = of_nodes([helper.make_node("Pad", ["x", "p"], ["y"])], {"x": ROW}, {"p": np.array([-2, -1])})
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    model = load(proto, symbols={"n": (1, 9)})
    np.testing.assert_array_equal(evaluate(model.graph, *model.arguments(x=ROW), n=6)[0], ROW[2:-1])
    with pytest.raises(TensorkilnError):
        evaluate(model.graph, *model.arguments(x=ROW[:2]), n=2)


@pytest.mark.parametrize(("opset", "hint"), [(20, "; opset 22 takes it, so export the model for that$"), (22, "")])
def test_a_type_that_only_later_opsets_take_is_refused_with_the_first_of_these(opset: int, hint: str):
    image, filters = (np.ones(shape, ml_dtypes.bfloat16) for shape in ((1, 2, 4, 4), (3, 2, 1, 1)))
    proto = of_nodes([helper.make_node("Conv", ["x", "w"], ["y"])], {"x": image}, {"w": filters}, opset=opset)
    if not hint:
        assert load(proto).graph.nodes
        return
    with pytest.raises(InvalidGraphError, match=hint):
        load(proto)


def test_a_type_that_no_opset_takes_is_refused_without_a_hint():
    with pytest.raises(InvalidGraphError, match=r"input 0 is a tensor\(int32\); taken are tensor\(bool\)$"):
        load(of_nodes([helper.make_node("Not", ["x"], ["y"])], {"x": INTEGERS}))
