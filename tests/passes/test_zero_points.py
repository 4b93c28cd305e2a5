"""Zero points of products of bytes: taken out of the sums where the weights are parameters, with the same integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialect.from_graph import from_graph
from dialect.kiln import new_context
from passes.decompose import decompose
from tensorkiln.build import Builder, Tensor, conv
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.filecheck import check_ir


def bytes_of(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray[Any, Any]:
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max, shape, dtype, endpoint=True)


def centred(b: Builder, shape: Any) -> Tensor:
    """An image of bytes, less its zero point."""
    return b.input("uint8", shape).cast("int32") - b.input("uint8", ()).cast("int32")


def without_zero_points(graph: Graph) -> str:
    return str(decompose(from_graph(graph, new_context()), multiplies_bytes=True))


def test_a_zero_point_is_multiplied_by_sums_of_weights() -> None:
    b = Builder()
    b.output(centred(b, (4, 6)) @ b.parameter("int8", (6, 8)).cast("int32"))
    check_ir(
        without_zero_points(b.graph()),
        """
        // CHECK-DAG: %[[SUMS:.*]] = "kiln.reduce_axis"({{.*}}) {{.*}}reduce_op_kind = "sum"{{.*}} -> tensor<1x8xi32>
        // CHECK-DAG: %[[ALL:.*]] = "kiln.reduce_axis"({{.*}}) {{.*}}reduce_op_kind = "sum"{{.*}} -> tensor<4x8xi32>
        // CHECK: "kiln.binop"(%[[ALL]], %{{.*}}) {{.*}}op = "sub"
        """,
    )


def test_a_padded_image_has_its_zero_point_around_it() -> None:
    b = Builder()
    b.output(conv(centred(b, (1, 3, 5, 5)), b.parameter("int8", (8, 3, 3, 3)).cast("int32"), padding=1))
    check_ir(
        without_zero_points(b.graph()),
        """
        // CHECK: %[[X:.*]] = "kiln.pad"({{.*}}) {{.*}} -> tensor<1x3x7x7xui8>
        // CHECK: "kiln.ternary"(%{{.*}}, %[[X]], %{{.*}}) {{.*}}op = "where"
        """,
    )


def test_int8_becomes_uint8_unless_the_target_multiplies_it() -> None:
    b = Builder()
    b.output(b.input("int8", (4, 6)).cast("int32") @ b.parameter("int8", (6, 8)).cast("int32"))
    graph = b.graph()
    check_ir(
        without_zero_points(graph),
        """
        // CHECK: %[[BITS:.*]] = "kiln.cast"(%arg0) {{.*}} -> tensor<4x6xui8>
        // CHECK: %[[SHIFTED:.*]] = "kiln.binop"(%[[BITS]], %{{.*}}) {{.*}}op = "add"{{.*}} -> tensor<4x6xui8>
        // CHECK: op = "sub"
        """,
    )
    signed = decompose(from_graph(graph, new_context()), multiplies_bytes=True, multiplies_signed=True)
    assert str(signed) == str(decompose(from_graph(graph, new_context())))


@pytest.mark.parametrize("case", ["weights of the call", "depthwise", "weights with a zero point"])
def test_zero_points_stay_where_taking_them_out_does_not_pay(case: str) -> None:
    b = Builder()
    if case == "depthwise":
        b.output(conv(centred(b, (1, 4, 5, 5)), b.parameter("int8", (4, 1, 3, 3)).cast("int32"), groups=4))
    else:
        is_given = case == "weights of the call"
        x, weights = centred(b, (4, 6)), (b.input if is_given else b.parameter)("int8", (6, 8)).cast("int32")
        b.output(x @ (weights if is_given else weights - b.parameter("int8", (8,)).cast("int32")))
    graph = b.graph()
    assert without_zero_points(graph) == str(decompose(from_graph(graph, new_context())))


@settings(max_examples=15)
@given(
    st.tuples(st.integers(1, 2), st.integers(4, 9), st.integers(5, 12), st.integers(5, 12)),
    st.sampled_from([(3, 1, 1), (1, 0, 1), (3, 2, 2), (5, 1, 1)]),
    st.sampled_from([1, 2]),
    st.booleans(),
    st.integers(0, 255),
)
def test_a_convolution_of_bytes_equals_the_reference(
    sizes: tuple[int, int, int, int], window: tuple[int, int, int], groups: int, symbolic: bool, zero: int
) -> None:
    batch, per_group, height, width = sizes
    taps, padding, stride = window
    channels, filters = per_group * groups, 8 * groups
    b = Builder()
    shape = (b.symbol("n", 1, 4) if symbolic else batch, channels, height, width)
    image = centred(b, shape)
    weights = b.parameter("int8", (filters, per_group, taps, taps)).cast("int32")
    b.output(conv(image, weights, padding=padding, stride=stride, groups=groups))
    graph = b.graph()
    arrays = (
        bytes_of((batch, channels, height, width), "uint8", 1),
        np.asarray(zero, np.uint8),
        bytes_of((filters, per_group, taps, taps), "int8", 2),
    )
    symbols = {"n": batch} if symbolic else {}
    (found,) = checked.ready(graph)(*arrays, **symbols)
    np.testing.assert_array_equal(found, evaluate(graph, *arrays, **symbols)[0])


def test_a_product_of_symbolic_rows_equals_the_reference() -> None:
    b = Builder()
    x = centred(b, (b.symbol("m", 1, 40), 70))
    b.output((x @ b.parameter("int8", (70, 40)).cast("int32")).cast("float32") * b.parameter("float32", (40,)))
    graph = b.graph()
    made = checked.ready(graph)
    scales = np.linspace(0.5, 2, 40, dtype=np.float32)
    for rows in (1, 5, 33):
        arrays = bytes_of((rows, 70), "uint8", 3), np.asarray(131, np.uint8), bytes_of((70, 40), "int8", 4), scales
        np.testing.assert_array_equal(made(*arrays, m=rows)[0], evaluate(graph, *arrays, m=rows)[0], f"m = {rows}")
