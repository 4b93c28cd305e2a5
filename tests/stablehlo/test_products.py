"""dot_general and convolution against the interpreter of StableHLO."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from stablehlo.translate import translate
from tensorkiln.errors import UnsupportedGraphError

from .modules import module
from .oracle import agree, arguments, computed

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
        ("i1",) * 3,
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


HALVES = [kinds for kinds in product(("f16", "bf16"), repeat=3) if len({*kinds}) > 1]


FIRST = {"bf16": [1e5, 3.0], "f16": [1.001, 3.0]}
SECOND = {"bf16": [1e-5, 3.0], "f16": [1e-4, 2.0]}


@pytest.mark.parametrize(("left", "right", "result"), HALVES)
def test_neither_half_is_made_the_other(left: str, right: str, result: str) -> None:
    """bf16 holds what is too large for f16; the products of the numbers here fit both."""
    a, b = f"1x2x{left}", f"2x1x{right}"
    operations = ["dot_general %a0, %a1, contracting_dims = [1] x [0]"]
    if left == right:
        # No module has a convolution of two types.
        groups = "batch_group_count = 1 : i64, feature_group_count = 1 : i64"
        operations.append(f"convolution(%a0, %a1) dim_numbers = [b, f]x[i, o]->[b, f], window = {{}} {{{groups}}}")
    for operation in operations:
        line = f"%r0 = stablehlo.{operation} : (tensor<{a}>, tensor<{b}>) -> tensor<1x1x{result}>"
        text = module([a, b], line, f"1x1x{result}")
        first, second = arguments(text)
        given = [
            np.array(FIRST[left]).astype(first.dtype).reshape(first.shape),
            np.array(SECOND[right]).astype(second.dtype).reshape(second.shape),
        ]
        ((found,),) = computed(text, given)[0].astype(np.float64)
        expected = (given[0].reshape(-1).astype(np.float64) * given[1].reshape(-1).astype(np.float64)).sum()
        np.testing.assert_allclose(found, expected, rtol=2.0**-7)


ALGORITHM = (
    "algorithm = <lhs_precision_type = {kind}, rhs_precision_type = {kind}, accumulation_type = {sums}, "
    "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = {steps}, "
    "allow_imprecise_accumulation = false>"
)


def _of_algorithm(kind: str, sums: str, steps: int = 1) -> str:
    line = "%r0 = stablehlo.dot_general %a0, %a1, contracting_dims = [0] x [0], " + ALGORITHM.format(
        kind=kind, sums=sums, steps=steps
    )
    return module(["3xf32", "3xf32"], f"{line} : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>", "f32")


def test_an_algorithm_is_honoured_or_refused() -> None:
    plain = _of_algorithm("f32", "f32")
    (found,) = computed(plain, [np.array([1, 2, 3], np.float32)] * 2)
    assert found == 14
    for text in (_of_algorithm("tf32", "f32"), _of_algorithm("bf16", "f32", 3)):
        with pytest.raises(UnsupportedGraphError, match="its algorithm is not supported; ask for one of float32"):
            translate(text)
