"""Dynamic dimensions: symbols, shapes that are values, assertions about them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stablehlo.translate import translate
from tensorkiln.errors import (
    InvalidGraphError,
    LimitExceededError,
    RequestError,
    TensorkilnError,
    UnsupportedGraphError,
)
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests.compiled import ready, run

from .modules import module
from .oracle import interpreted

EXPORTED = Path(__file__).parent / "exported"
ROWS = {"0.0": (1, 64)}
NORMAL = np.array(
    [
        [-0.028304616, 0.46713185, 0.29570296, 0.15354592],
        [-0.12403282, 0.21692315, -1.440879, 0.7558599],
        [0.52140963, 0.9101704, -0.3844966, 1.1398233],
    ],
    np.float32,
)

SHAPED = module(
    ["?x3xf32"],
    """
    %n = stablehlo.get_dimension_size %a0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<1xi32>
    %zero = stablehlo.constant dense<0> : tensor<2xi32>
    %ones = stablehlo.constant dense<1> : tensor<2xi32>
    %three = stablehlo.constant dense<3> : tensor<1xi32>
    %fill = stablehlo.constant dense<7.0> : tensor<f32>
    %m = stablehlo.multiply %n, %two : tensor<i32>
    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
    %s = stablehlo.concatenate %m1, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %t = stablehlo.concatenate %n1, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %c = stablehlo.concatenate %a0, %a0, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %r0 = stablehlo.dynamic_reshape %c, %s : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    %f = stablehlo.dynamic_broadcast_in_dim %fill, %t, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
    %i = stablehlo.dynamic_iota %t, dim = 0 : (tensor<2xi32>) -> tensor<?x3xf32>
    %g = stablehlo.add %f, %i : tensor<?x3xf32>
    %r1 = stablehlo.multiply %g, %a0 : tensor<?x3xf32>
    %r2 = stablehlo.dynamic_pad %a0, %fill, %zero, %ones, %zero
      : (tensor<?x3xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %r3 = stablehlo.real_dynamic_slice %c, %zero, %t, %ones
      : (tensor<?x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
    %r4 = stablehlo.convert %m : (tensor<i32>) -> tensor<f32>""",
    *("?x3xf32", "?x3xf32", "?x?xf32", "?x3xf32", "f32"),
)


@pytest.mark.parametrize("rows", [1, 5, 64])
def test_shapes_that_are_values(rows: int) -> None:
    graph = Graph.model_validate(translate(SHAPED, ROWS).document)
    assert dict(graph.symbols) == {"d0_0": (1, 64)}
    x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    found = evaluate(graph, x, d0_0=rows)
    expected = [
        np.concatenate([x, x]),
        (7 + np.arange(rows, dtype=np.float32)[:, None]) * x,
        np.pad(x, ((0, 1), (0, 1)), constant_values=7),
        x,
        np.float32(2 * rows),
    ]
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_symbol_of_one_value_is_no_symbol() -> None:
    document = translate(SHAPED, {"d0_0": (5, 5)}).document
    assert document["symbolic_vars"] == []
    assert document["vars_metadata"]["0"]["shape"] == [5, 3]


def test_a_dynamic_dimension_without_bounds_is_named() -> None:
    with pytest.raises(UnsupportedGraphError, match=r"Dimension 0 of argument 0 .*\"0\.0\": \{\"min\"") as caught:
        translate(SHAPED)
    assert caught.value.pointers == ("/dims",)


def test_bounds_of_no_dimension_are_refused() -> None:
    with pytest.raises(RequestError, match=r"'1\.0'; dynamic are 0\.0\.") as caught:
        translate(SHAPED, {**ROWS, "1.0": (1, 2)})
    assert caught.value.details == {"dimensions": ["0.0", "d0_0"]}


def _asserted(direction: str, other: str) -> str:
    return module(
        ["?x3xf32", "?xf32"],
        f"""
        %n = stablehlo.get_dimension_size %a0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
        %m = stablehlo.get_dimension_size %a1, dim = 0 : (tensor<?xf32>) -> tensor<i32>
        %two = stablehlo.constant dense<2> : tensor<i32>
        %k = stablehlo.multiply %n, %two : tensor<i32>
        %p = stablehlo.compare {direction}, %m, {other}, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.custom_call @shape_assertion(%p, %n)
          {{error_message = "rows are {{0}}", has_side_effect = true}} : (tensor<i1>, tensor<i32>) -> ()
        %r0 = stablehlo.negate %a1 : tensor<?xf32>""",
        "?xf32",
    )


def test_sizes_asserted_equal_are_one_symbol() -> None:
    graph = Graph.model_validate(translate(_asserted("EQ", "%k"), ROWS).document)
    assert dict(graph.symbols) == {"d0_0": (1, 64)}
    (found,) = evaluate(graph, np.ones((2, 3), np.float32), np.ones(4, np.float32), d0_0=2)
    assert found.tolist() == [-1.0] * 4


def test_a_dimension_may_be_what_one_of_a_later_argument_is() -> None:
    body = """
    %n = stablehlo.get_dimension_size %a0, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %m = stablehlo.get_dimension_size %a1, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %k = stablehlo.add %m, %m : tensor<i32>
    %p = stablehlo.compare EQ, %n, %k, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%p) {has_side_effect = true} : (tensor<i1>) -> ()
    %r0 = stablehlo.negate %a0 : tensor<?xf32>"""
    text = module(["?xf32", "?xf32"], body, "?xf32")
    graph = Graph.model_validate(translate(text, {"1.0": (1, 8)}).document)
    assert dict(graph.symbols) == {"d1_0": (1, 8)}
    (found,) = evaluate(graph, np.ones(6, np.float32), np.ones(3, np.float32), d1_0=3)
    assert found.tolist() == [-1.0] * 6
    with pytest.raises(UnsupportedGraphError, match=r"Dimension 0 of argument 1 .* has no bounds"):
        translate(text)


def test_an_assertion_that_bounds_decide_is_decided() -> None:
    dims = {**ROWS, "1.0": (2, 9)}
    assert translate(_asserted("GE", "%two"), dims).document["nodes"]
    with pytest.raises(InvalidGraphError, match=r"is false: rows are \{0\}"):
        translate(_asserted("LT", "%two"), dims)


def test_an_assertion_that_bounds_do_not_decide_is_refused() -> None:
    with pytest.raises(UnsupportedGraphError, match="depends on symbols; give them other bounds in dims"):
        translate(_asserted("GT", "%two"), {**ROWS, "1.0": (1, 9)})


def exported(name: str) -> Graph:
    return Graph.model_validate(translate((EXPORTED / f"{name}.mlirbc").read_bytes(), ROWS).document)


def test_a_layer_that_jax_exports_has_its_rows_for_a_symbol() -> None:
    graph = exported("layer")
    made = ready(graph)
    for rows in (1, 3, 64):
        draws = np.random.default_rng(rows)
        x, weight, bias = (draws.normal(size=shape).astype(np.float32) for shape in ((rows, 4), (4, 6), (6,)))
        wide = x.astype(np.float64) @ weight + bias
        gelu = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
        expected = np.exp(gelu) / np.exp(gelu).sum(1, keepdims=True)
        for found in (evaluate(graph, x, weight, bias, d0_0=rows), made(x, weight, bias, d0_0=rows)):
            np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-6)


def test_arguments_that_jax_exports_with_one_symbol_share_it() -> None:
    graph = exported("pairs")
    assert dict(graph.symbols) == {"d0_0": (1, 64)}
    draws = np.random.default_rng(0)
    x, y = draws.normal(size=(5, 2)).astype(np.float32), draws.normal(size=(5, 3)).astype(np.float32)
    expected = np.concatenate([x, y], 1) * np.arange(5)[:, None] + y.mean(0, keepdims=True)[:, :1]
    (found,) = evaluate(graph, x, y, d0_0=5)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_random_numbers_that_jax_exports_are_those_of_jax() -> None:
    graph = Graph.model_validate(translate((EXPORTED / "numbers.mlirbc").read_bytes()).document)
    (found,) = evaluate(graph, np.array([0, 42], np.uint32))
    # jax.random.normal(jax.random.key(42), (3, 4)) of JAX 0.10.
    np.testing.assert_allclose(found, NORMAL, rtol=1e-5)


def test_positions_that_jax_exports_are_those_of_numpy() -> None:
    graph = Graph.model_validate(translate((EXPORTED / "places.mlirbc").read_bytes()).document)
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    at = np.array([4, -1, 0, 4], np.int32)
    rows, added, first, ordered, greatest, of_greatest = evaluate(graph, x, at)
    expected = x.copy()
    np.add.at(expected, at, np.float32(1))
    np.testing.assert_array_equal(rows, x[at])
    np.testing.assert_array_equal(added, expected)
    np.testing.assert_array_equal(first, x.argmax(1))
    np.testing.assert_array_equal(ordered, np.sort(x, 1))
    np.testing.assert_array_equal(greatest, -np.sort(-x, 1)[:, :2])
    np.testing.assert_array_equal(of_greatest, np.argsort(-x, 1)[:, :2])


def test_bounds_are_asked_for_before_anything_else_is_wrong() -> None:
    with pytest.raises(TensorkilnError) as caught:
        translate((EXPORTED / "layer.mlirbc").read_bytes())
    assert caught.value.pointers == ("/dims",)


def test_bounds_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(RequestError, match=r"dims gives d0_0 and 0\.0 different bounds: .* dimension 0 of argument 0"):
        translate(SHAPED, {**ROWS, "d0_0": (1, 3)})
    asserted = _asserted("EQ", "%k")
    assert translate(asserted, {**ROWS, "1.0": (1, 128)}).document["nodes"]
    with pytest.raises(RequestError, match=r"dimension 0 of argument 1 of @main is .* from 2 to 128; .* from 1 to 9"):
        translate(asserted, {**ROWS, "1.0": (1, 9)})


def test_sizes_that_are_asserted_to_be_too_large_an_expression_are_over_a_limit() -> None:
    sizes = "\n".join(
        f"%w{at} = stablehlo.get_dimension_size %a{at}, dim = 0 : (tensor<?xf32>) -> tensor<i32>\n"
        f"%n{at} = stablehlo.convert %w{at} : (tensor<i32>) -> tensor<i64>"
        for at in range(6)
    )
    powers = "\n".join(f"%p{at + 1} = stablehlo.multiply %p{at}, %p{at} : tensor<i64>" for at in range(1, 4))
    body = f"""
    {sizes}
    %p1 = stablehlo.multiply %n1, %n1 : tensor<i64>
    {powers}
    %c = stablehlo.compare EQ, %n0, %p4, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%c) {{has_side_effect = true}} : (tensor<i1>) -> ()
    %s1 = stablehlo.add %n2, %n3 : tensor<i64>
    %s2 = stablehlo.add %s1, %n4 : tensor<i64>
    %s3 = stablehlo.add %s2, %n5 : tensor<i64>
    %d = stablehlo.compare EQ, %n1, %s3, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%d) {{has_side_effect = true}} : (tensor<i1>) -> ()
    %r0 = stablehlo.negate %a2 : tensor<?xf32>"""
    with pytest.raises(LimitExceededError, match="A dimension of @main is too large an expression") as caught:
        translate(module(["?xf32"] * 6, body, "?xf32"), {f"{at}.0": (1, 4) for at in range(2, 6)})
    assert caught.value.pointers == ("/stablehlo",)


def _reduced(size: object, body: str, axes: str = "0", result: str = "2xf32") -> str:
    kinds = f"(tensor<{size}x2xf32>, tensor<f32>) -> tensor<{result}>"
    return module(
        [f"{size}x2xf32"],
        f"""
    %start = stablehlo.constant dense<0.25> : tensor<f32>
    %r0 = stablehlo.reduce(%a0 init: %start) across dimensions = [{axes}] : {kinds}
     reducer(%x: tensor<f32>, %y: tensor<f32>) {{ {body} }}""",
        result,
    )


@pytest.mark.parametrize(
    "body",
    [
        "stablehlo.return %y : tensor<f32>",
        """%g = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %s = stablehlo.select %g, %x, %y : tensor<i1>, tensor<f32>
        stablehlo.return %s : tensor<f32>""",
    ],
    ids=["the last", "the largest"],
)
def test_any_region_reduces_a_dimension_of_any_length_in_order(body: str) -> None:
    graph = Graph.model_validate(translate(_reduced("?", body), {"0.0": (0, 21)}).document)
    for size in (0, 1, 2, 7, 16, 21):
        x = np.random.default_rng(size).standard_normal((size, 2)).astype(np.float32)
        expected = interpreted(_reduced(size, body), [x])
        np.testing.assert_array_equal(evaluate(graph, x, d0_0=size), expected)
        np.testing.assert_array_equal(run(graph, x, d0_0=size), expected)


def test_a_region_reduces_no_dimension_of_many_lengths_or_beside_another() -> None:
    last = "stablehlo.return %y : tensor<f32>"
    with pytest.raises(UnsupportedGraphError, match="65536 elements; here these are 1, and d0_0 may be 65537"):
        translate(_reduced("?", last), {"0.0": (1, 65537)})
    with pytest.raises(UnsupportedGraphError, match="here these are 2"):
        translate(_reduced("?", last, "0, 1", "f32"), {"0.0": (1, 8)})


ROW = module(
    ["5x?xf32", "i32"],
    """
    %n = stablehlo.get_dimension_size %a0, dim = 1 : (tensor<5x?xf32>) -> tensor<i32>
    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %two = stablehlo.constant dense<2> : tensor<1xi32>
    %five = stablehlo.constant dense<5> : tensor<1xi32>
    %zero = stablehlo.constant dense<0> : tensor<2xi32>
    %nothing = stablehlo.constant dense<0> : tensor<1xi32>
    %ones = stablehlo.constant dense<1> : tensor<2xi32>
    %size = stablehlo.concatenate %two, %n1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %whole = stablehlo.concatenate %five, %n1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %i1 = stablehlo.reshape %a1 : (tensor<i32>) -> tensor<1xi32>
    %at = stablehlo.concatenate %i1, %nothing, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %last = stablehlo.subtract %whole, %size : tensor<2xi32>
    %start = stablehlo.clamp %zero, %at, %last : tensor<2xi32>
    %limit = stablehlo.add {sum} : tensor<2xi32>
    %r0 = stablehlo.real_dynamic_slice %a0, %start, %limit, %ones
      : (tensor<5x?xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x?xf32>""",
    "2x?xf32",
)


@pytest.mark.parametrize("terms", ["%start, %size", "%size, %start"])
def test_a_slice_of_known_size_may_begin_at_a_computed_position(terms: str) -> None:
    """So `jax.export` writes a row of a tensor with a symbolic size, such as the one that a turn of `scan` reads."""
    graph = Graph.model_validate(translate(ROW.replace("{sum}", terms), {"0.1": (1, 9)}).document)
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    for place, begin in ((-3, 0), (0, 0), (2, 2), (3, 3), (9, 3)):
        for found in (evaluate(graph, x, np.int32(place), d0_1=7), run(graph, x, np.int32(place), d0_1=7)):
            np.testing.assert_array_equal(found[0], x[begin : begin + 2])


def test_a_slice_of_a_computed_size_is_refused() -> None:
    with pytest.raises(UnsupportedGraphError, match="a bound of its slice is computed at run time"):
        translate(ROW.replace("{sum}", "%start, %start"), {"0.1": (1, 9)})
