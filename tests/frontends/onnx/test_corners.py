"""Corners of operators: what ONNX Runtime gives there, or what no small model may ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser

from tensorkiln.errors import TensorkilnError, UnsupportedGraphError
from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate

Array = np.ndarray[Any, Any]


def model(node: NodeProto, inputs: dict[str, Array], weights: dict[str, Any], opset: int) -> ModelProto:
    graph = helper.make_graph(
        [node],
        "corner",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in inputs.items()
        ],
        [helper.make_tensor_value_info(name, 0, None) for name in node.output if name],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def run(op: str, inputs: dict[str, Array], *, opset: int = 21, outputs: int = 1, **rest: Any) -> list[Array]:
    """`rest` are attributes, and weights where they are arrays."""
    weights = {name: value for name, value in rest.items() if isinstance(value, np.ndarray)}
    attributes: Any = {name: value for name, value in rest.items() if name not in weights}
    names = [*inputs, *weights]
    node = helper.make_node(op, names, [f"y{place}" for place in range(outputs)], **attributes)
    imported = load(model(node, inputs, weights, opset))
    return list(evaluate(imported.graph, *imported.arguments(**inputs)))


def test_a_reduction_of_dimensions_over_no_axes_may_be_none() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21]> g (float[n, 3] x) => (float[] y) '
        "{ s = Shape(x) p = ReduceProd<noop_with_empty_axes = 1>(s) y = ConstantOfShape(p) }"
    )
    imported = load(parser.parse_model(text), symbols={"n": (1, 8)})
    (y,) = evaluate(imported.graph, *imported.arguments(x=np.ones((2, 3), np.float32)), n=2)
    assert y.shape == (2, 3)


def test_padding_is_never_where_the_maximum_of_a_pool_was() -> None:
    x = np.zeros((1, 1, 3, 3), np.uint8)
    _, places = run("MaxPool", {"x": x}, opset=12, outputs=2, kernel_shape=[2, 2], pads=[1, 1, 1, 1])
    assert_array_equal(places[0, 0, 0], [0, 0, 1, 2])


def test_acosh_below_one_is_not_a_number() -> None:
    (y,) = run("Acosh", {"x": np.array([-1e20, -1e5, 0.5, 1.0], np.float32)})
    assert_array_equal(y, np.array([np.nan, np.nan, np.nan, 0.0], np.float32))


def test_a_zero_point_of_one_entry_adds_no_axis() -> None:
    a, b = np.arange(4, dtype=np.uint8), np.ones((4, 3), np.uint8)
    (y,) = run("MatMulInteger", {"a": a, "b": b}, opset=10, zero=np.array([1], np.uint8))
    assert_array_equal(y, np.full(3, 2, np.int32))


@pytest.mark.parametrize("length", [3, 4, 6, 8])
def test_a_real_inverse_transform_takes_as_many_bins_as_its_length_has(length: int) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 2)).astype(np.float32)
    (y,) = run("DFT", {"x": x}, opset=20, length=np.array(length), axis=np.array(1), inverse=1, onesided=1)
    assert_allclose(y[..., 0], np.fft.irfft(x[..., 0] + 1j * x[..., 1], length, 1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("wanted", "expected"), [(13, [1, 1, 0] * 4 + [0]), (12, [1, 1, 0] * 4), (9, [1, 0, 1, 1, 0, 1, 1, 0, 1])]
)
def test_a_stated_output_shape_beyond_the_result_is_filled_up_at_the_end(wanted: int, expected: list[int]) -> None:
    x, w = np.ones((1, 1, 4), np.float32), np.ones((1, 1, 2), np.float32)
    (y,) = run("ConvTranspose", {"x": x}, w=w, strides=[3], output_shape=[wanted])
    assert y.tolist() == [[expected]]


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(
    ("extent", "length", "inverse", "onesided"),
    [(7, 7, 0, 0), (7, 5, 0, 1), (5, 9, 1, 0), (1, 1, 0, 1), (97, 97, 0, 1), (4500, 4500, 0, 0), (6, 11, 1, 1)],
)
def test_a_transform_is_that_of_numpy(extent: int, length: int, inverse: int, onesided: int, parts: int) -> None:
    x = np.random.default_rng(1).standard_normal((extent, 2, parts)).astype(np.float32)
    values = x[..., 0] + 1j * x[..., 1] if parts == 2 else x[..., 0].astype(np.complex128)
    (y,) = run("DFT", {"x": x}, opset=20, length=np.array(length), axis=np.array(0), inverse=inverse, onesided=onesided)
    if onesided:
        expected = np.fft.irfft(values, length, 0) if inverse else np.fft.fft(values, length, 0)[: length // 2 + 1]
    else:
        expected = (np.fft.ifft if inverse else np.fft.fft)(values, length, 0)
    found = y[..., 0] if inverse and onesided else y[..., 0] + 1j * y[..., 1]
    assert y.dtype == np.float32
    assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("start", "limit", "step", "count"),
    [(-30000, 30000, 7000, 9), (np.int32(-(2**31)), np.int32(2**31 - 1), np.int32(2**30), 4)],
)
def test_a_range_of_narrow_integers_counts_without_overflow(start: Any, limit: Any, step: Any, count: int) -> None:
    kind = np.int16 if isinstance(start, int) else np.int32
    (y,) = run("Range", {}, a=np.array(start, kind), b=np.array(limit, kind), c=np.array(step, kind))
    assert (y.shape, y.dtype) == ((count,), kind)


def test_a_range_of_floats_counts_in_wider_ones() -> None:
    (y,) = run("Range", {}, a=np.array(0, np.float32), b=np.array(0.3, np.float32), c=np.array(0.1, np.float32))
    assert y.shape == (4,)


def test_sample_positions_are_rounded_before_reflection() -> None:
    x = np.arange(8, dtype=np.float32).reshape(1, 1, 4, 2)
    grid = np.array([[[[-2.0, 0.0], [2.0, 0.0]]]], np.float32)
    (y,) = run("GridSample", {"x": x, "g": grid}, mode="nearest", padding_mode="reflection", opset=20)
    assert_array_equal(y.reshape(-1), [5.0, 5.0])


def test_integers_are_resized_as_floats_and_rounded_and_saturated_once() -> None:
    x = np.array([[0, 255, 0, 255]], np.uint8)
    (y,) = run(
        "Resize", {"x": x}, opset=13, mode="cubic", roi=np.zeros(0, np.float32), s=np.array([1, 2.25], np.float32)
    )
    assert y[0, 0] == 0
    assert y[0, -1] == 255


def test_only_an_activation_that_has_a_constant_takes_one() -> None:
    rng = np.random.default_rng(2)
    x, w, r = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 1, 3), (1, 6, 3), (1, 6, 2)))
    given: Any = {"activations": ["Sigmoid", "LeakyRelu"], "hidden_size": 2}
    (one,) = run("GRU", {"x": x}, w=w, r=r, opset=14, activation_alpha=[0.4], **given)
    (other,) = run("GRU", {"x": x}, w=w, r=r, opset=14, **given)
    assert not np.allclose(one, other), "0.4 and not 0.01 is the slope of LeakyRelu"


def test_more_flags_than_elements_are_refused() -> None:
    with pytest.raises(TensorkilnError, match="5 flags are more than the 3 elements"):
        run("Compress", {"x": np.ones((3, 2), np.float32)}, opset=11, flags=np.array([1, 0, 1, 1, 1], bool), axis=0)


def test_an_equation_is_read_in_time_that_grows_with_its_length() -> None:
    with pytest.raises(TensorkilnError, match="does not name the axes"):
        run("Einsum", {"x": np.ones((1, 1), np.float32)}, equation="a" * 60 + "1")


@pytest.mark.parametrize(
    ("op", "shape", "rest", "message"),
    [
        (
            "Resize",
            (20000,),
            {"roi": np.zeros(0, np.float32), "s": np.array([3], np.float32), "mode": "linear"},
            "a table",
        ),
        ("Resize", (4,), {"roi": np.zeros(0, np.float32), "s": np.array([1e7], np.float32)}, "a table"),
        ("STFT", (1, 300000, 1), {"step": np.array(1), "window": np.ones(4096, np.float32)}, "frames"),
        ("STFT", (1, 8, 1), {"step": np.array(1), "window": np.ones(9, np.float32)}, "frames of 9"),
        ("DFT", (1, 16411, 1), {}, "prime factor 16411"),
    ],
    ids=["linear", "nearest", "frames", "no frame", "prime"],
)
def test_large_tables_are_refused(op: str, shape: tuple[int, ...], rest: Any, message: str) -> None:
    with pytest.raises(UnsupportedGraphError, match=message):
        run(op, {"x": np.ones(shape, np.float32)}, **rest)


def test_an_attribute_that_a_function_does_not_have_is_refused() -> None:
    with pytest.raises(UnsupportedGraphError, match="the attribute foo is not supported"):
        run("Celu", {"x": np.ones(3, np.float32)}, foo=3)


def test_a_function_that_has_no_body_for_its_inputs_is_refused() -> None:
    body = helper.make_graph([helper.make_node("Neg", ["a"], ["b"])], "body", [], [])
    body.input.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, None))
    body.output.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, None))
    with pytest.raises(TensorkilnError, match="SequenceMap #0"):
        run("SequenceMap", {"x": np.ones(3, np.float32)}, body=body)


def test_dimensions_that_a_loop_nests_are_refused() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21]> g (float[n, 3] x) => (float[] y) { s = Shape(x) '
        "m = Constant<value_int = 300>() k = Constant<value_ints = [3, 2]>() z = Loop(m, , s) <body = b "
        "(int64 i, bool c, int64[2] a) => (bool c2, int64[2] d) { c2 = Identity(c) e = Div(a, k) d = Add(e, s) }> "
        "y = ConstantOfShape(z) }"
    )
    with pytest.raises(UnsupportedGraphError, match="levels"):
        load(parser.parse_model(text), symbols={"n": (1, 8)})


@pytest.mark.parametrize("opset", [11, 13, 20])
def test_channels_become_blocks_and_blocks_channels_in_every_opset(opset: int) -> None:
    x = np.arange(2 * 8 * 3 * 2, dtype=np.float32).reshape(2, 8, 3, 2)
    (y,) = run("DepthToSpace", {"x": x}, opset=opset, blocksize=2)
    assert_array_equal(y, x.reshape(2, 2, 2, 2, 3, 2).transpose(0, 3, 4, 1, 5, 2).reshape(2, 2, 6, 4))
    (back,) = run("SpaceToDepth", {"x": y}, opset=opset, blocksize=2)
    assert_array_equal(back, x)
    (z,) = run("DepthToSpace", {"x": x}, opset=opset, blocksize=2, mode="CRD")
    assert_array_equal(z, x.reshape(2, 2, 2, 2, 3, 2).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 4))


@pytest.mark.parametrize(
    ("op", "inputs", "rest", "message"),
    [
        ("LpNormalization", {"x": np.ones((2, 3), np.float32)}, {"p": 3}, "p is 3, and 1 or 2 is taken"),
        ("GatherND", {"x": np.ones((2, 3), np.float32)}, {"i": np.zeros((1, 3), np.int64)}, "tuples of 3 indices"),
        ("DequantizeLinear", {"x": np.ones((2, 1), np.uint8)}, {"s": np.ones(3, np.float32)}, "does not broadcast"),
        ("Einsum", {"x": np.ones((2, 3), np.float32)}, {"equation": "ii->i"}, "the axes i of an operand"),
        ("Einsum", {"x": np.ones((2, 3), np.float32)}, {"equation": "ij->ik"}, "has some that no operand has"),
    ],
    ids=["norm", "tuples", "scale", "diagonal", "letters"],
)
def test_values_out_of_range_are_no_numbers(op: str, inputs: Any, rest: Any, message: str) -> None:
    with pytest.raises(TensorkilnError, match=message):
        run(op, inputs, **rest)


def test_whether_a_dimension_is_zero_is_not_guessed() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21]> g (float[n, 3] x) => (int64[] y) '
        "{ s = Shape(x) z = NonZero(s) y = Identity(z) }"
    )
    with pytest.raises(UnsupportedGraphError, match="whether n is 0 depends on symbols"):
        load(parser.parse_model(text), symbols={"n": (0, 5)})
    assert load(parser.parse_model(text), symbols={"n": (1, 5)}).outputs


def test_the_weights_of_a_body_that_runs_often_are_one_parameter() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21]> g (float[4] x) => (float[4] y) { m = Constant<value_int = 5>() '
        "y = Loop(m, , x) <body = b (int64 i, bool c, float[4] a) => (bool c2, float[4] d) "
        "<float[4] w = {1, 2, 3, 4}> { c2 = Identity(c) d = Add(a, w) }> }"
    )
    imported = load(parser.parse_model(text))
    assert len(imported.parameters) == 1
    (y,) = evaluate(imported.graph, *imported.arguments(x=np.zeros(4, np.float32)))
    assert_array_equal(y, 5 * np.arange(1, 5, dtype=np.float32))


@pytest.mark.parametrize("size", [5, 9])
def test_a_determinant_of_many_rows_exchanges_them_as_it_must(size: int) -> None:
    drawn = np.random.default_rng(size)
    x = drawn.standard_normal((4, size, size))
    # Zeros on the diagonal, rows that must be exchanged, a matrix without an inverse, a permutation.
    x[0, 0, 0] = x[1, 1, 1] = 0
    x[2, :, 3] = 0
    x[3] = np.eye(size)[drawn.permutation(size)]
    (found,) = run("Det", {"x": x})
    assert_allclose(found, np.linalg.det(x), rtol=1e-10, atol=1e-12)
    assert found[2] == 0
    with pytest.raises(UnsupportedGraphError, match="the determinant of 65 rows"):
        run("Det", {"x": np.zeros((65, 65), np.float32)})
