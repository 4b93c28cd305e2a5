"""Reductions, of whole axes and of windows, against the interpreter of StableHLO."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorkiln.expr import product

from .modules import module
from .oracle import agree, arguments, computed, graph_of

KINDS = ("f16", "bf16", "f32", "f64", "i8", "i32", "i64", "ui8", "ui32")
IDENTITIES = {"add": "0", "multiply": "1", "maximum": "-9", "minimum": "9"}
BODY = """^bb0(%x: tensor<{kind}>, %y: tensor<{kind}>):
  %z = stablehlo.{name} %x, %y : tensor<{kind}>
  stablehlo.return %z : tensor<{kind}>"""


def _reduce(name: str, kind: str, init: str) -> str:
    value = init if kind[0] in "iu" else f"{init}.0"
    return module(
        [f"3x4x5x{kind}"],
        f"""
        %c = stablehlo.constant dense<{value}> : tensor<{kind}>
        %r0 = stablehlo.reduce(%a0 init: %c) applies stablehlo.{name} across dimensions = [0, 2]
          : (tensor<3x4x5x{kind}>, tensor<{kind}>) -> tensor<4x{kind}>
        %r1 = stablehlo.reduce(%a0 init: %c) applies stablehlo.{name} across dimensions = [0, 1, 2]
          : (tensor<3x4x5x{kind}>, tensor<{kind}>) -> tensor<{kind}>""",
        f"4x{kind}",
        kind,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", IDENTITIES)
def test_a_reduction(name: str, kind: str) -> None:
    init = IDENTITIES[name] if not (kind.startswith("u") and name == "maximum") else "0"
    text = _reduce(name, kind, init)
    (x,) = arguments(text)
    if name == "multiply" or kind in ("f16", "bf16"):
        x = np.sign(x.astype(np.float64)).astype(x.dtype)
    agree(text, [x], steps=16.0)


@pytest.mark.parametrize("name", ["and", "or", "xor", "add", "maximum", "minimum", "multiply"])
@pytest.mark.parametrize("kind", ["i1", "i32"])
def test_a_reduction_of_bits(name: str, kind: str) -> None:
    neutral = {"and": "-1" if kind == "i32" else "true", "minimum": "true", "multiply": "true"}.get(name, "false")
    neutral = {"true": "1", "false": "0"}.get(neutral, neutral) if kind == "i32" else neutral
    text = module(
        [f"3x7x{kind}"],
        f"""
        %c = stablehlo.constant dense<{neutral}> : tensor<{kind}>
        %r0 = stablehlo.reduce(%a0 init: %c) applies stablehlo.{name} across dimensions = [1]
          : (tensor<3x7x{kind}>, tensor<{kind}>) -> tensor<3x{kind}>""",
        f"3x{kind}",
    )
    agree(text, arguments(text))


@pytest.mark.parametrize("name", IDENTITIES)
def test_a_reduction_of_nothing_is_its_initial_value(name: str) -> None:
    text = module(
        ["3x0xf32", "f32"],
        f"""
        %r0 = stablehlo.reduce(%a0 init: %a1) applies stablehlo.{name} across dimensions = [1]
          : (tensor<3x0xf32>, tensor<f32>) -> tensor<3xf32>""",
        "3xf32",
    )
    agree(text, arguments(text))


ARGMAX = """
    %z = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %i = stablehlo.iota dim = 1 : tensor<4x{n}xi32>
    %r0, %r1 = stablehlo.reduce(%a0 init: %z), (%i init: %c) across dimensions = [1]
      : (tensor<4x{n}xf32>, tensor<4x{n}xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
     reducer(%1: tensor<f32>, %3: tensor<f32>) (%2: tensor<i32>, %4: tensor<i32>) {{
      %5 = stablehlo.compare GT, %1, %3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare NE, %1, %1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %7 = stablehlo.or %5, %6 : tensor<i1>
      %8 = stablehlo.compare EQ, %1, %3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %9 = stablehlo.compare LT, %2, %4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %10 = stablehlo.and %8, %9 : tensor<i1>
      %11 = stablehlo.or %7, %10 : tensor<i1>
      %12 = stablehlo.select %7, %1, %3 : tensor<i1>, tensor<f32>
      %13 = stablehlo.select %11, %2, %4 : tensor<i1>, tensor<i32>
      stablehlo.return %12, %13 : tensor<f32>, tensor<i32>
    }}"""


@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_a_reduction_of_two_tensors_by_any_region(n: int) -> None:
    text = module([f"4x{n}xf32"], ARGMAX.format(n=n), "4xf32", "4xi32")
    (x,) = arguments(text)
    x[0, 0] = np.nan
    x[1] = 2.0
    agree(text, [x])


def _window(name: str, kind: str, attributes: str, shape: str, init: str) -> str:
    body = BODY.format(kind=kind, name=name)
    return module(
        [f"2x6x7x{kind}"],
        f"""
        %c = stablehlo.constant dense<{init}> : tensor<{kind}>
        %r0 = "stablehlo.reduce_window"(%a0, %c) <{{{attributes}}}> ({{{body}}})
          : (tensor<2x6x7x{kind}>, tensor<{kind}>) -> tensor<{shape}x{kind}>""",
        f"{shape}x{kind}",
    )


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ("window_dimensions = array<i64: 1, 2, 3>", "2x5x5"),
        ("window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 2, 3>", "2x3x2"),
        (
            (
                "window_dimensions = array<i64: 1, 3, 2>, window_strides = array<i64: 1, 2, 1>, "
                "padding = dense<[[0, 0], [1, 2], [0, 1]]> : tensor<3x2xi64>"
            ),
            "2x4x7",
        ),
        (
            (
                "window_dimensions = array<i64: 1, 2, 2>, window_dilations = array<i64: 1, 2, 3>, "
                "base_dilations = array<i64: 1, 2, 1>, padding = dense<[[0, 0], [-1, 2], [0, 0]]> : tensor<3x2xi64>"
            ),
            "2x10x4",
        ),
        (
            "window_dimensions = array<i64: 1, 6, 1>, padding = dense<[[0, 0], [5, 0], [0, 0]]> : tensor<3x2xi64>",
            "2x6x7",
        ),
    ],
)
@pytest.mark.parametrize(("name", "init"), [("add", "0.0"), ("maximum", "0xFF800000"), ("minimum", "0x7F800000")])
def test_windows(name: str, init: str, attributes: str, shape: str) -> None:
    text = _window(name, "f32", attributes, shape, init)
    agree(text, arguments(text), steps=16.0)


@pytest.mark.parametrize("edges", ["[299, 0]", "[0, 299]"])
@pytest.mark.parametrize(
    ("name", "kind", "init"),
    [
        ("add", "f32", "0.0"),
        ("add", "f32", "2.0"),
        ("add", "f16", "0.0"),
        ("add", "i8", "0"),
        ("multiply", "i32", "1"),
        ("maximum", "f32", "0xFF800000"),
        ("minimum", "ui64", "18446744073709551615"),
    ],
)
def test_running_totals_of_long_axes_are_of_blocks(name: str, kind: str, init: str, edges: str) -> None:
    body = BODY.format(kind=kind, name=name)
    text = module(
        [f"2x300x2x{kind}"],
        f"""
        %c = stablehlo.constant dense<{init}> : tensor<{kind}>
        %r0 = "stablehlo.reduce_window"(%a0, %c) <{{window_dimensions = array<i64: 1, 300, 1>,
          padding = dense<[[0, 0], {edges}, [0, 0]]> : tensor<3x2xi64>}}> ({{{body}}})
          : (tensor<2x300x2x{kind}>, tensor<{kind}>) -> tensor<2x300x2x{kind}>""",
        f"2x300x2x{kind}",
    )
    (x,) = arguments(text)
    if kind == "f32":
        x[0, 7, 0], x[1, 200, 1], x[1, 250, 1] = np.inf, -np.inf, np.nan
    if kind == "f16":
        # The interpreter rounds every sum.
        x = np.round(x)
    agree(text, [x], steps=512.0)
    sizes = [product(each.shape) for each in graph_of(text).types.values()]
    assert init == "2.0" or all(isinstance(size, int) and size < x.size * 128 for size in sizes)


@pytest.mark.parametrize("kind", ["i32", "ui8", "f64", "bf16"])
def test_windows_of_other_types(kind: str) -> None:
    text = _window("add", kind, "window_dimensions = array<i64: 1, 2, 3>", "2x5x5", "0" if kind[0] in "iu" else "0.0")
    agree(text, arguments(text))


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ("window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 2, 2>", "2x3x3"),
        ("window_dimensions = array<i64: 1, 3, 2>, window_strides = array<i64: 1, 1, 2>", "2x4x3"),
        (
            (
                "window_dimensions = array<i64: 1, 3, 3>, window_strides = array<i64: 1, 2, 2>, "
                "padding = dense<[[0, 0], [1, 1], [1, 1]]> : tensor<3x2xi64>"
            ),
            "2x3x4",
        ),
    ],
)
def test_elements_selected_by_windows_get_their_source(attributes: str, shape: str) -> None:
    text = module(
        ["2x6x7xf32", f"{shape}xf32"],
        f"""
        %c = stablehlo.constant dense<0.0> : tensor<f32>
        %r0 = "stablehlo.select_and_scatter"(%a0, %a1, %c) <{{{attributes}}}> ({{
          ^bb0(%x: tensor<f32>, %y: tensor<f32>):
            %z = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %z : tensor<i1>
          }}, {{
          ^bb0(%x: tensor<f32>, %y: tensor<f32>):
            %z = stablehlo.add %x, %y : tensor<f32>
            stablehlo.return %z : tensor<f32>
          }}) : (tensor<2x6x7xf32>, tensor<{shape}xf32>, tensor<f32>) -> tensor<2x6x7xf32>""",
        "2x6x7xf32",
    )
    agree(text, arguments(text))


COMBINED: dict[str, Any] = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum}


@pytest.mark.parametrize(
    ("windows", "shape"),
    [
        ("window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>", "2x2"),
        ("window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 1, 1>", "2x3"),
    ],
)
@pytest.mark.parametrize("scatter", ["add", "multiply", "maximum"])
@pytest.mark.parametrize("init", ["1.0", "-2.0"])
def test_the_initial_value_counts_once_where_windows_select(init: str, scatter: str, windows: str, shape: str) -> None:
    text = module(
        ["4x4xf32", f"{shape}xf32"],
        f"""
        %c = stablehlo.constant dense<{init}> : tensor<f32>
        %r0 = "stablehlo.select_and_scatter"(%a0, %a1, %c) <{{{windows}}}> ({{
          ^bb0(%x: tensor<f32>, %y: tensor<f32>):
            %z = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %z : tensor<i1>
          }}, {{
          ^bb0(%x: tensor<f32>, %y: tensor<f32>):
            %z = stablehlo.{scatter} %x, %y : tensor<f32>
            stablehlo.return %z : tensor<f32>
          }}) : (tensor<4x4xf32>, tensor<{shape}xf32>, tensor<f32>) -> tensor<4x4xf32>""",
        "4x4xf32",
    )
    extents, strides = (3, 2) if "3, 2" in windows else (2, 2), 1 if "1, 1" in windows else 2
    for seed in range(3):
        x, source = arguments(text, seed)
        # As XLA does. The interpreter, which agrees for a maximum, counts it once more for each source.
        expected = np.full((4, 4), float(init), np.float32)
        for at in np.ndindex(source.shape):
            begin = [place * strides for place in at]
            window = x[begin[0] : begin[0] + extents[0], begin[1] : begin[1] + extents[1]]
            row, column = np.unravel_index(window.argmax(), window.shape)
            place = begin[0] + row, begin[1] + column
            expected[place] = COMBINED[scatter](expected[place], source[at])
        np.testing.assert_array_equal(computed(text, [x, source])[0], expected)
        if scatter == "maximum":
            agree(text, [x, source])
