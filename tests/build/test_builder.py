"""Declaring symbols, inputs, constants and outputs, and taking the graph."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

from tensorkiln.build import Builder, arange, dim_value, floormod
from tensorkiln.dtypes import DType
from tensorkiln.errors import InvalidGraphError
from tensorkiln.expr import symbol
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate


def test_a_graph_is_validated_and_survives_a_round_trip_through_json():
    builder = Builder("affine")
    n = builder.symbol("n", 1, 64)
    x, w = builder.input("float32", (n, 3), name="x"), builder.input("float32", (3, 2), name="w")
    builder.output((x @ w).relu(), x)
    graph = builder.graph()
    assert graph.input_vars == (x.var, w.var)
    assert graph.types[graph.output_vars[0]].shape == (symbol("n"), 2)
    assert Graph.model_validate_json(graph.to_json()) == graph
    assert json.loads(json.dumps(builder.document())) == builder.document()


def test_inputs_keep_their_names_and_order():
    builder = Builder()
    second, first = builder.input("int8", (2,), name="b"), builder.input("int8", (2,), name="a")
    assert list(builder.inputs.items()) == [("b", second), ("a", first)]
    with pytest.raises(InvalidGraphError, match="already"):
        builder.input("int8", (2,), name="a")


def test_a_string_in_a_shape_names_a_declared_symbol():
    builder = Builder()
    builder.symbol("n", 1, 8)
    assert builder.input("float32", ("n", 2)).shape == (symbol("n"), 2)
    with pytest.raises(InvalidGraphError, match=r"m.* not declared"):
        builder.input("float32", ("m",))


@pytest.mark.parametrize("name", ["9n", "", "a b", "n" * 65])
def test_a_bad_name_is_refused(name: str):
    with pytest.raises(InvalidGraphError, match="1 to 64 letters"):
        Builder(name)
    with pytest.raises(InvalidGraphError, match="1 to 64 letters"):
        Builder().symbol(name, 1, 2)


def test_a_symbol_has_one_declaration_with_bounds_that_are_not_empty():
    builder = Builder()
    assert builder.symbol("n", 1, 8) == builder.symbol("n", 1, 8)
    with pytest.raises(InvalidGraphError, match="already"):
        builder.symbol("n", 1, 9)
    with pytest.raises(InvalidGraphError, match="give the smaller first"):
        builder.symbol("m", 3, 2)


def test_a_graph_without_outputs_is_refused():
    with pytest.raises(InvalidGraphError, match="no output"):
        Builder().graph()


def test_tensors_of_two_builders_do_not_mix():
    one, other = Builder("one"), Builder("other")
    x, y = one.input("float32", (2,)), other.input("float32", (2,))
    with pytest.raises(InvalidGraphError, match="other"):
        _ = x + y
    with pytest.raises(InvalidGraphError, match="other"):
        one.output(y)


def test_equal_scalars_share_a_node_and_signed_zeros_do_not():
    builder = Builder()
    assert builder.constant(1.5) is builder.constant(1.5)
    assert builder.constant(0.0) is not builder.constant(-0.0)
    assert builder.constant(1, "int8") is not builder.constant(1, "int16")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, DType.BOOL),
        (3, DType.INT32),
        (0.5, DType.FLOAT32),
        (np.float64(0.5), DType.FLOAT64),
        ([1, 2], DType.INT32),
    ],
)
def test_a_constant_without_a_dtype_takes_the_natural_one(value: object, dtype: DType):
    assert Builder().constant(value).dtype is dtype  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(300, "uint8"), (-1, "uint64"), (0.5, "int32"), (True, "float32"), (1, "bool"), (1e39, "float32")],
)
def test_a_constant_that_its_dtype_cannot_hold_is_refused(value: float, dtype: str):
    with pytest.raises(InvalidGraphError, match="constant"):
        Builder().constant(value, dtype)


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype is not DType.UNIT])
def test_tables_of_every_dtype_reach_the_reference_unchanged(dtype: DType):
    table = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype.numpy)
    if dtype.is_float:
        table[0] = np.inf, -np.inf
        table[1, 0] = np.array(1 / 3, dtype.numpy)
    elif dtype.is_integer:
        table[0] = np.array([dtype.min, dtype.max], dtype.numpy)
    builder = Builder()
    builder.output(builder.constant(table), builder.constant(table[2, 0]))
    array, scalar = evaluate(builder.graph())
    np.testing.assert_array_equal(array, table)
    assert array.dtype == scalar.dtype == dtype.numpy
    assert scalar[()] == table[2, 0]


def test_a_constant_of_rank_0_and_of_size_0_are_constants_too():
    builder = Builder()
    assert builder.constant(np.array(2.5, ml_dtypes.bfloat16)).shape == ()
    builder.output(builder.constant(np.zeros((0, 3), np.float32)))
    assert evaluate(builder.graph())[0].shape == (0, 3)


def test_a_table_too_large_to_be_a_constant_is_refused():
    with pytest.raises(InvalidGraphError, match="65536"):
        Builder().constant(np.zeros(65537, np.float32))


def test_the_value_of_a_dimension_is_computed_from_the_symbols():
    builder = Builder()
    n, m = builder.symbol("n", 0, 100), builder.symbol("m", 1, 100)
    builder.output(dim_value(builder, (n * 3 - m) // 7 + floormod(n - 50, m), "int32"), dim_value(builder, 5))
    for given in (dict(n=0, m=13), dict(n=61, m=9)):
        value, constant = evaluate(builder.graph(), **given)
        assert value == (given["n"] * 3 - given["m"]) // 7 + (given["n"] - 50) % given["m"]
        assert constant == 5


@pytest.mark.parametrize("stop", [0, 1, 1024, 8192, 8193, 20000])
def test_arange_counts(stop: int):
    builder = Builder()
    n = builder.symbol("n", 0, 1 << 22)
    builder.output(
        arange(builder, stop), arange(builder, n, "uint32"), arange(builder, n * 2 if stop < 9 else n, "float64")
    )
    fixed, symbolic, floats = evaluate(builder.graph(), n=stop)
    np.testing.assert_array_equal(fixed, np.arange(stop))
    np.testing.assert_array_equal(symbolic, np.arange(stop, dtype=np.uint32))
    np.testing.assert_array_equal(floats, np.arange(stop * 2 if stop < 9 else stop, dtype=np.float64))


@pytest.mark.parametrize(("most", "sums"), [(8192, 0), (8193, 1)])
def test_arange_of_up_to_8192_numbers_is_one_table(most: int, sums: int):
    builder = Builder()
    builder.output(arange(builder, builder.symbol("n", 0, most)))
    assert sum(node.node == "binop" for node in builder.graph().nodes) == sums


def test_arange_refuses_a_dtype_that_overflows():
    builder = Builder()
    builder.symbol("n", 0, 1000)
    assert arange(builder, 128, "int8").shape == (128,)
    with pytest.raises(InvalidGraphError, match="int8"):
        arange(builder, "n", "int8")


def test_an_error_points_at_the_node_that_was_to_be_next():
    builder = Builder()
    x = builder.input("float32", (2,))
    with pytest.raises(InvalidGraphError) as caught:
        _ = x + builder.input("int32", (2,))
    assert caught.value.pointers == ("/nodes/2",)


def test_the_sources_of_a_tensor_are_the_inputs_but_no_parameters_it_is_computed_from():
    b = Builder()
    x, y, z = (b.input("float32", (3,), name) for name in ("x", "y", "z"))
    w = b.parameter("float32", (3,), "w")
    assert b.sources((z + w) * x) == ("x", "z")
    assert b.sources(y) == ("y",)
    assert b.sources(b.constant(1.0)) == ()
