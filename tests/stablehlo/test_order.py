"""Sorting against the interpreter of StableHLO."""

from __future__ import annotations

import numpy as np
import pytest

from tensorkiln.expr import product

from .modules import module
from .oracle import agree, arguments, computed, graph_of


def _sort(kind: str, direction: str, order: str, axis: int) -> str:
    whole = f"tensor<3x7x{kind}>"
    return module(
        [f"3x7x{kind}"],
        f"""
        %i = stablehlo.iota dim = {axis} : tensor<3x7xi32>
        %r0, %r1 = "stablehlo.sort"(%a0, %i) <{{dimension = {axis} : i64, is_stable = true}}> ({{
          ^bb0(%x: tensor<{kind}>, %y: tensor<{kind}>, %p: tensor<i32>, %q: tensor<i32>):
            %z = stablehlo.compare {direction}, %x, %y{order} : (tensor<{kind}>, tensor<{kind}>) -> tensor<i1>
            stablehlo.return %z : tensor<i1>
          }}) : ({whole}, tensor<3x7xi32>) -> ({whole}, tensor<3x7xi32>)""",
        f"3x7x{kind}",
        "3x7xi32",
    )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("direction", ["LT", "GT"])
@pytest.mark.parametrize("kind", ["f32", "bf16", "f64", "i32", "ui8", "i64"])
def test_a_sort(kind: str, direction: str, axis: int) -> None:
    text = _sort(kind, direction, "", axis)
    agree(text, arguments(text))


@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_a_sort_in_the_total_order(direction: str) -> None:
    text = _sort("f32", direction, ", TOTALORDER", 1)
    (x,) = arguments(text)
    x[0, :6] = [np.nan, -0.0, 0.0, -np.nan, np.inf, -np.inf]
    found, _ = computed(text, [x])
    bits = x[0].view(np.int32).astype(np.int64)
    keys = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    expected = x[0][np.argsort(keys if direction == "LT" else -keys, kind="stable")]
    np.testing.assert_array_equal(found[0], expected)


@pytest.mark.parametrize(("direction", "last"), [("LT", True), ("GT", False)])
def test_no_element_is_lost_where_a_comparator_has_no_place_for_nan(direction: str, last: bool) -> None:
    text = _sort("f32", direction, ", FLOAT", 1)
    (x,) = arguments(text)
    x[0, [1, 4]] = np.nan
    found, places = computed(text, [x])
    assert sorted(places[0]) == list(range(7))
    assert np.isnan(found[0, -2:] if last else found[0, :2]).all()


def test_a_sort_by_two_keys() -> None:
    text = module(
        ["9xi32", "9xi32"],
        """
        %r0, %r1 = "stablehlo.sort"(%a0, %a1) <{dimension = 0 : i64}> ({
          ^bb0(%x: tensor<i32>, %y: tensor<i32>, %p: tensor<i32>, %q: tensor<i32>):
            %0 = stablehlo.compare LT, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
            %1 = stablehlo.compare EQ, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
            %2 = stablehlo.compare GT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
            %3 = stablehlo.and %1, %2 : tensor<i1>
            %4 = stablehlo.or %0, %3 : tensor<i1>
            stablehlo.return %4 : tensor<i1>
          }) : (tensor<9xi32>, tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>)""",
        "9xi32",
        "9xi32",
    )
    x, y = arguments(text)
    agree(text, [x % 3, y])


@pytest.mark.parametrize("kind", ["f32", "i32"])
def test_the_greatest_elements(kind: str) -> None:
    text = module(
        [f"3x8x{kind}"],
        f"%r0, %r1 = chlo.top_k(%a0, k = 3) : tensor<3x8x{kind}> -> (tensor<3x3x{kind}>, tensor<3x3xi32>)",
        f"3x3x{kind}",
        "3x3xi32",
    )
    agree(text, arguments(text))


def _first(kind: str, direction: str, order: str, extent: int, count: int) -> str:
    whole, places = f"tensor<2x{extent}x2x{kind}>", f"tensor<2x{extent}x2xi32>"
    few = [f"2x{count}x2x{kind}", f"2x{count - 1}x2xi32"]
    return module(
        [f"2x{extent}x2x{kind}"],
        f"""
        %i = stablehlo.iota dim = 1 : {places}
        %s, %p = "stablehlo.sort"(%a0, %i) <{{dimension = 1 : i64, is_stable = true}}> ({{
          ^bb0(%x: tensor<{kind}>, %y: tensor<{kind}>, %p: tensor<i32>, %q: tensor<i32>):
            %z = stablehlo.compare {direction}, %x, %y{order} : (tensor<{kind}>, tensor<{kind}>) -> tensor<i1>
            stablehlo.return %z : tensor<i1>
          }}) : ({whole}, {places}) -> ({whole}, {places})
        %r0 = stablehlo.slice %s [0:2, 0:{count}, 0:2] : ({whole}) -> tensor<{few[0]}>
        %r1 = stablehlo.slice %p [0:2, 1:{count}, 0:2] : ({places}) -> tensor<{few[1]}>""",
        *few,
    )


@pytest.mark.parametrize(("extent", "count"), [(70, 3), (700, 20), (9000, 2)])
@pytest.mark.parametrize("direction", ["LT", "GT"])
@pytest.mark.parametrize(
    ("kind", "order"), [("f32", ", TOTALORDER"), ("f32", ""), ("i32", ""), ("ui8", ""), ("f16", "")]
)
def test_the_first_elements_in_order_are_selected(
    kind: str, order: str, direction: str, extent: int, count: int
) -> None:
    text = _first(kind, direction, order, extent, count)
    (x,) = arguments(text)
    keys = x
    if kind == "f32":
        x[0, :6, 0] = [np.inf, -0.0, 0.0, -0.0, np.inf, -np.inf]
    if order:
        x[0, 8:10, 1] = [np.nan, -np.nan]
        bits = x.view(np.int32).astype(np.int64)
        keys = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    wide = keys.astype(np.float64)
    places = np.argsort(wide if direction == "LT" else -wide, axis=1, kind="stable")
    values, found = computed(text, [x])
    np.testing.assert_array_equal(values, np.take_along_axis(x, places[:, :count], 1))
    np.testing.assert_array_equal(found, places[:, 1:count])
    sizes = [product(each.shape) for each in graph_of(text).types.values()]
    assert all(isinstance(size, int) and size < x.size * extent for size in sizes)
