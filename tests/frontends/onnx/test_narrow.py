"""Models that store floats of 8 and 4 bits, and integers of 4 and 2."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tensorkiln.dtypes import DType
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate
from tests import checked

Array = np.ndarray[Any, Any]
FLOATS_8 = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]
SMALL = ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"]


def model(*nodes: NodeProto, weights: dict[str, Array], kind: int = TensorProto.FLOAT, rows: Any = "n") -> ModelProto:
    """A model of one input `x` of three columns and one output `y`."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", kind, (rows, 3))],
        [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)


def node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"the_{op}", **attributes)


def array(dtype: str, values: Any) -> Array:
    return np.array(values).astype(getattr(ml_dtypes, dtype))


@pytest.mark.parametrize("dtype", SMALL)
def test_a_weight_of_less_than_8_bits_is_a_parameter_of_packed_bytes(dtype: str) -> None:
    # Enough not to be computed while the model is read.
    weight = array(dtype, np.arange(3 * 1401).reshape(3, 1401) % 2)
    scale = np.array(0.5, np.float32)
    made = load(
        model(node("DequantizeLinear", "w s", "f"), node("MatMul", "x f"), weights={"w": weight, "s": scale}),
        symbols={"n": (1, 8)},
    )
    packed = next(parameter for parameter in made.parameters.values() if parameter.dtype == np.uint8)
    assert packed.nbytes == -(-3 * 1401 * DType(dtype).bits // 8)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = x @ (weight.astype(np.float32) * scale)
    for run in (evaluate, checked.run_graph):
        (y,) = run(made.graph, *made.arguments(x=x), n=2)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("dtype", FLOATS_8)
@pytest.mark.parametrize("saturate", [0, 1])
def test_a_cast_saturates_unless_told_otherwise(dtype: str, saturate: int) -> None:
    to = helper.np_dtype_to_tensor_dtype(np.dtype(getattr(ml_dtypes, dtype)))
    made = load(model(node("Cast", "x", to=to, saturate=saturate), weights={}), symbols={"n": 1})
    (y,) = evaluate(made.graph, *made.arguments(x=np.array([[1.0, 1e6, -np.inf]], np.float32)))
    greatest = float(DType(dtype).max)
    beyond = [1.0, greatest, -greatest] if saturate else y.astype(np.float32)[0].tolist()
    assert y.astype(np.float32)[0].tolist() == pytest.approx(beyond, nan_ok=True)
    assert np.isfinite(y.astype(np.float32)[0, 1:]).all() == bool(saturate)


@pytest.mark.parametrize("saturate", [0, 1])
def test_a_known_value_is_cast_as_a_computed_one(saturate: int) -> None:
    known = np.array([[1.0625, 1e6, np.nan]], np.float32)
    nodes = [
        node("Cast", "k", "a", to=TensorProto.FLOAT8E4M3FN, saturate=saturate),
        node("Cast", "x", "b", to=TensorProto.FLOAT8E4M3FN, saturate=saturate),
        node("Cast", "a", "c", to=TensorProto.FLOAT),
        node("Cast", "b", "d", to=TensorProto.FLOAT),
        node("Concat", "c d", axis=0),
    ]
    constant = helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(known))
    made = load(model(constant, *nodes, weights={}), symbols={"n": 1})
    (y,) = evaluate(made.graph, *made.arguments(x=known))
    folded, computed = y
    np.testing.assert_array_equal(folded, computed)
    assert (folded[1] == 448) == bool(saturate)


@pytest.mark.parametrize("dtype", FLOATS_8)
def test_a_float_is_quantised_and_back(dtype: str) -> None:
    scale, zero = np.array(2.0, np.float32), array(dtype, 0)
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z")]
    made = load(model(*nodes, weights={"s": scale, "z": zero}), symbols={"n": (1, 4)})
    x = np.array([[1.0, -3.1, 1e9], [0.0, 7.0, 0.3]], np.float32)
    greatest = float(DType(dtype).max)
    expected = np.clip(x / scale, -greatest, greatest).astype(zero.dtype).astype(np.float32) * scale
    for run in (evaluate, checked.run_graph):
        (y,) = run(made.graph, *made.arguments(x=x), n=2)
        np.testing.assert_array_equal(y, expected)


def test_a_product_of_8_bit_floats_keeps_their_fractions() -> None:
    kind = ml_dtypes.float8_e4m3fn
    one, zero = np.array(1.0, np.float32), np.array(0, kind)
    weight = np.array([[0.5, 0.25], [1.5, -0.5], [0.75, 2]]).astype(kind)
    made = load(
        model(
            node("QLinearMatMul", "x one zero w one zero one zero"),
            weights={"w": weight, "one": one, "zero": zero},
            kind=TensorProto.FLOAT8E4M3FN,
        ),
        symbols={"n": (1, 4)},
    )
    x = np.array([[0.5, 1.5, 2.0]]).astype(kind)
    (y,) = evaluate(made.graph, *made.arguments(x=x), n=1)
    np.testing.assert_array_equal(y, (x.astype(np.float32) @ weight.astype(np.float32)).astype(kind))


def test_nan_and_infinities_of_8_bit_floats_are_seen() -> None:
    x = np.array([[np.nan, np.inf, 1]]).astype(ml_dtypes.float8_e5m2)
    for op, expected in (("IsNaN", [[True, False, False]]), ("IsInf", [[False, True, False]])):
        made = load(model(node(op, "x"), weights={}, kind=TensorProto.FLOAT8E5M2), symbols={"n": 1})
        (y,) = evaluate(made.graph, *made.arguments(x=x))
        assert y.tolist() == expected


def test_the_type_without_a_zero_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedGraphError, match="float8_e8m0fnu is not supported"):
        load(model(node("Cast", "x", to=TensorProto.FLOAT8E8M0), weights={}), symbols={"n": 1})
