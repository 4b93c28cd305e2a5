"""Sizes of dimensions as numbers of an element type: they wrap as that does, beside the module with static sizes."""

from __future__ import annotations

import numpy as np
import pytest

from stablehlo.constants import MAX_SIZES
from stablehlo.translate import translate
from tensorkiln.errors import InvalidGraphError, LimitExceededError, UnsupportedGraphError
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate

from .modules import module
from .oracle import interpreted


def _module(size: object, body: str, *results: str) -> str:
    count = f"%n = stablehlo.get_dimension_size %a0, dim = 0 : (tensor<{size}xi8>) -> tensor<i32>"
    return module([f"{size}xi8"], f"{count}\n{body}", *results)


def _agree(size: int, most: int, body: str, *results: str) -> None:
    graph = Graph.model_validate(translate(_module("?", body, *results), {"0.0": (1, most)}).document)
    given = np.zeros(size, np.int8)
    expected = interpreted(_module(size, body, *results), [given])
    for found, other in zip(evaluate(graph, given, d0_0=size), expected, strict=True):
        assert found.dtype == other.dtype
        np.testing.assert_array_equal(found, other)


BELOW = """
    %u = stablehlo.convert %n : (tensor<i32>) -> tensor<ui32>
    %ten = stablehlo.constant dense<10> : tensor<ui32>
    %two = stablehlo.constant dense<2> : tensor<ui32>
    %d = stablehlo.subtract %u, %ten : tensor<ui32>
    %r0 = stablehlo.divide %d, %two : tensor<ui32>
    %r1 = stablehlo.remainder %d, %two : tensor<ui32>
    %r2 = stablehlo.compare LT, %d, %two : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %r3 = stablehlo.convert %d : (tensor<ui32>) -> tensor<i64>"""


@pytest.mark.parametrize("size", [5, 10, 15])
def test_an_unsigned_size_less_than_nothing_wraps(size: int) -> None:
    _agree(size, 100, BELOW, "ui32", "ui32", "i1", "i64")


SQUARES = """
    %s = stablehlo.multiply %n, %n : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r0 = stablehlo.convert %s : (tensor<i32>) -> tensor<i64>
    %r1 = stablehlo.compare LT, %s, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %r2 = stablehlo.maximum %s, %zero : tensor<i32>"""


@pytest.mark.parametrize("size", [7, 46_341, 65_536])
def test_a_square_of_a_size_wraps(size: int) -> None:
    _agree(size, 65_536, SQUARES, "i64", "i1", "i32")


NARROW = """
    %b = stablehlo.convert %n : (tensor<i32>) -> tensor<i8>
    %most = stablehlo.constant dense<127> : tensor<i8>
    %m1 = stablehlo.reshape %most : (tensor<i8>) -> tensor<1xi8>
    %b1 = stablehlo.reshape %b : (tensor<i8>) -> tensor<1xi8>
    %p = stablehlo.concatenate %b1, %m1, dim = 0 : (tensor<1xi8>, tensor<1xi8>) -> tensor<2xi8>
    %one = stablehlo.constant dense<1> : tensor<2xi8>
    %r0 = stablehlo.add %p, %one : tensor<2xi8>
    %r1 = stablehlo.convert %r0 : (tensor<2xi8>) -> tensor<2xi32>"""


@pytest.mark.parametrize(("size", "most"), [(5, 100), (127, 127), (200, 300)])
def test_numbers_beside_sizes_wrap_too(size: int, most: int) -> None:
    _agree(size, most, NARROW, "2xi8", "2xi32")


def test_a_size_that_may_wrap_is_no_shape() -> None:
    body = """
    %s = stablehlo.multiply %n, %n : tensor<i32>
    %t = stablehlo.reshape %s : (tensor<i32>) -> tensor<1xi32>
    %r0 = stablehlo.dynamic_iota %t, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>"""
    assert translate(_module("?", body, "?xf32"), {"0.0": (1, 40_000)}).document["nodes"]
    with pytest.raises(UnsupportedGraphError, match="the shape of its result is computed at run time"):
        translate(_module("?", body, "?xf32"), {"0.0": (1, 65_536)})


def test_a_size_that_is_asserted_may_be_any_until_it_is_known() -> None:
    body = """
    %n = stablehlo.get_dimension_size %a0, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %m = stablehlo.get_dimension_size %a1, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %k = stablehlo.multiply %n, %two : tensor<i32>
    %p = stablehlo.compare EQ, %k, %m, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%p) {has_side_effect = true} : (tensor<i1>) -> ()
    %r0 = stablehlo.negate %a1 : tensor<?xf32>"""
    text = module(["?xf32", "?xf32"], body, "?xf32")
    assert dict(Graph.model_validate(translate(text, {"0.0": (1, 8)}).document).symbols) == {"d0_0": (1, 8)}
    with pytest.raises(UnsupportedGraphError, match="is dynamic and has no bounds"):
        translate(text)


def test_a_size_that_is_repeated_is_one_number() -> None:
    body = """
    %b = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i32>) -> tensor<100000xi32>
    %i = stablehlo.iota dim = 0 : tensor<100000xi32>
    %r0 = stablehlo.add %i, %b : tensor<100000xi32>
    %t = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i32>) -> tensor<7x3xi32>
    %r1 = stablehlo.reverse %t, dims = [0] : tensor<7x3xi32>"""
    assert len(translate(_module("?", body, "100000xi32", "7x3xi32"), {"0.0": (1, 64)}).document["nodes"]) < 40
    _agree(5, 64, body, "100000xi32", "7x3xi32")


def test_a_table_of_many_sizes_is_over_a_limit() -> None:
    count = MAX_SIZES + 1
    body = f"""
    %b = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i32>) -> tensor<{count}xi32>
    %c = stablehlo.constant dense<[{", ".join(map(str, range(count)))}]> : tensor<{count}xi32>
    %s = stablehlo.add %b, %c : tensor<{count}xi32>
    %r0 = stablehlo.reverse %s, dims = [0] : tensor<{count}xi32>"""
    with pytest.raises(LimitExceededError) as caught:
        translate(_module("?", body, f"{count}xi32"), {"0.0": (1, 64)})
    assert caught.value.details["limit"] == "constant_sizes"


def test_a_size_fills_padding() -> None:
    body = """
    %x = stablehlo.iota dim = 0 : tensor<3xi32>
    %r0 = stablehlo.pad %x, %n, low = [1], high = [2], interior = [1] : (tensor<3xi32>, tensor<i32>) -> tensor<8xi32>
    %r1 = "stablehlo.reduce_window"(%x, %n) <{window_dimensions = array<i64: 2>,
      padding = dense<[[1, 0]]> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %z = stablehlo.maximum %a, %b : tensor<i32>
        stablehlo.return %z : tensor<i32>
      }) : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>"""
    _agree(5, 64, body, "8xi32", "3xi32")


def test_a_slice_ends_within_a_dynamic_dimension() -> None:
    text = module(["?xf32"], "%r0 = stablehlo.slice %a0 [0:5] : (tensor<?xf32>) -> tensor<5xf32>", "5xf32")
    assert translate(text, {"0.0": (5, 9)}).document["nodes"]
    with pytest.raises(UnsupportedGraphError, match=r"has the shape \(min\(.*\)\), where the module says \(5\)"):
        translate(text, {"0.0": (1, 9)})
    with pytest.raises(UnsupportedGraphError, match="is dynamic and has no bounds"):
        translate(text)


def _sliced(rows: str, start: int, limit: int, step: int) -> str:
    constants = "\n".join(
        f"%{name} = stablehlo.constant dense<{value}> : tensor<1xi32>"
        for name, value in (("start", start), ("limit", limit), ("step", step))
    )
    return module(
        [f"{rows}xf32"],
        f"""
        {constants}
        %r0 = stablehlo.real_dynamic_slice %a0, %start, %limit, %step
          : (tensor<{rows}xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>""",
        "?xf32",
    )


def test_bounds_of_a_slice_that_are_values_lie_within_its_dimension() -> None:
    x = np.arange(6, dtype=np.float32)
    for document, sizes in (
        (translate(_sliced("6", 1, 6, 2)).document, {}),
        (translate(_sliced("?", 1, 6, 2), {"0.0": (6, 9)}).document, {"d0_0": 6}),
    ):
        (found,) = evaluate(Graph.model_validate(document), x, **sizes)
        assert found.tolist() == [1, 3, 5]
    for start, limit, step in ((-1, 6, 1), (0, -1, 1), (0, 7, 1), (0, 6, 0), (5, 0, -1)):
        with pytest.raises(InvalidGraphError, match="its slice from"):
            translate(_sliced("6", start, limit, step))
    with pytest.raises(UnsupportedGraphError, match="its slice ends at 6, and the dimension d0_0 may be 5"):
        translate(_sliced("?", 0, 6, 1), {"0.0": (5, 9)})
