"""dot_general and convolution against the interpreter of StableHLO."""

from __future__ import annotations

import pytest

from .modules import module
from .oracle import agree, arguments

DOTS = {
    "matrices": ("2x3", "3x4", "contracting_dims = [1] x [0]", "2x4"),
    "transposed": ("3x2", "4x3", "contracting_dims = [0] x [1]", "2x4"),
    "batches": ("5x2x3", "5x3x4", "batching_dims = [0] x [0], contracting_dims = [2] x [1]", "5x2x4"),
    "batches in the middle": ("2x5x3", "3x4x5", "batching_dims = [1] x [2], contracting_dims = [2] x [0]", "5x2x4"),
    "two axes": ("2x3x4", "4x3x5", "contracting_dims = [1, 2] x [1, 0]", "2x5"),
    "outer": ("2", "3", "contracting_dims = [] x []", "2x3"),
    "inner": ("3", "3", "contracting_dims = [0] x [0]", ""),
}


@pytest.mark.parametrize("name", DOTS)
@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("f32",) * 3,
        ("f64",) * 3,
        ("i32",) * 3,
        ("bf16", "bf16", "f32"),
        ("f16",) * 3,
        ("i8", "i8", "i32"),
        ("ui8", "ui8", "ui32"),
    ],
)
def test_a_product(name: str, left: str, right: str, result: str) -> None:
    first, second, attributes, out = DOTS[name]
    a, b, r = f"{first}x{left}", f"{second}x{right}", f"{out}x{result}".lstrip("x")
    text = module(
        [a, b],
        f"%r0 = stablehlo.dot_general %a0, %a1, {attributes} : (tensor<{a}>, tensor<{b}>) -> tensor<{r}>",
        r,
    )
    agree(text, arguments(text))


CONVOLUTIONS = {
    "NCHW": ("2x3x6x7", "4x3x3x2", "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", "", "2x4x4x6", 1, 1),
    "NHWC, strided and padded": (
        *("2x6x7x3", "3x2x3x4", "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"),
        *("stride = [2, 1], pad = [[1, 2], [0, 1]]", "2x4x7x4", 1, 1),
    ),
    "dilated": (
        *("1x5x6x2", "2x2x2x3", "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"),
        *("lhs_dilate = [2, 1], rhs_dilate = [1, 3], pad = [[1, 0], [-1, 2]]", "1x9x4x3", 1, 1),
    ),
    "reversed": ("1x2x6", "3x2x3", "[b, f, 0]x[o, i, 0]->[b, f, 0]", "reverse = [true]", "1x3x4", 1, 1),
    "groups of features": ("2x4x6", "6x2x3", "[b, f, 0]x[o, i, 0]->[b, f, 0]", "", "2x6x4", 2, 1),
    "depthwise": ("1x4x6", "8x1x3", "[b, f, 0]x[o, i, 0]->[b, f, 0]", "", "1x8x4", 4, 1),
    "groups of the batch": ("4x3x6", "6x3x3", "[b, f, 0]x[o, i, 0]->[b, f, 0]", "", "2x6x4", 1, 2),
    "no space": ("2x3", "4x3", "[b, f]x[o, i]->[b, f]", "", "2x4", 1, 1),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize(("kind", "result"), [("f32", "f32"), ("f64", "f64"), ("bf16", "f32"), ("i8", "i32")])
def test_a_convolution(name: str, kind: str, result: str) -> None:
    image, kernel, numbers, window, out, features, batches = CONVOLUTIONS[name]
    a, b, r = f"{image}x{kind}", f"{kernel}x{kind}", f"{out}x{result}"
    text = module(
        [a, b],
        f"""
        %r0 = stablehlo.convolution(%a0, %a1) dim_numbers = {numbers}, window = {{{window}}}
          {{batch_group_count = {batches} : i64, feature_group_count = {features} : i64}}
          : (tensor<{a}>, tensor<{b}>) -> tensor<{r}>""",
        r,
    )
    agree(text, arguments(text))
