"""Convolution and pooling against loops that visit every window."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tensorkiln.build import Builder, avg_pool, avg_pool2d, conv, conv2d, max_pool, max_pool2d
from tensorkiln.errors import CallInputError, InvalidGraphError
from tensorkiln.reference import evaluate

if TYPE_CHECKING:
    from tests.build.conftest import Compute

Array = np.ndarray[Any, Any]


def convolve(
    x: Array, weight: Array, stride: tuple[int, int], pads: Any, dilation: tuple[int, int], groups: int
) -> Array:
    """A convolution as its definition reads, one output at a time."""
    padded = np.pad(x, [(0, 0), (0, 0), *pads])
    batch, channels, height, width = padded.shape
    outputs, _, kh, kw = weight.shape
    rows = (height - (kh - 1) * dilation[0] - 1) // stride[0] + 1
    columns = (width - (kw - 1) * dilation[1] - 1) // stride[1] + 1
    result = np.zeros((batch, outputs, rows, columns), x.dtype)
    for n, o, i, j in itertools.product(range(batch), range(outputs), range(rows), range(columns)):
        group = o // (outputs // groups)
        seen = padded[n, group * (channels // groups) : (group + 1) * (channels // groups)]
        top, left = i * stride[0], j * stride[1]
        patch = seen[:, top : top + (kh - 1) * dilation[0] + 1 : dilation[0]]
        patch = patch[:, :, left : left + (kw - 1) * dilation[1] + 1 : dilation[1]]
        result[n, o, i, j] = (patch * weight[o]).sum()
    return result


CONVOLUTIONS = [
    # channels, outputs, kernel, stride, padding, dilation, groups
    (3, 4, (3, 3), (1, 1), [(0, 0), (0, 0)], (1, 1), 1),
    (3, 4, (3, 3), (1, 1), [(1, 1), (1, 1)], (1, 1), 1),
    (3, 2, (3, 2), (2, 3), [(1, 0), (0, 2)], (1, 1), 1),
    (4, 6, (3, 3), (1, 1), [(1, 1), (1, 1)], (1, 1), 2),
    (4, 4, (3, 3), (2, 2), [(1, 1), (1, 1)], (1, 1), 4),
    (4, 8, (2, 2), (1, 1), [(0, 0), (0, 0)], (2, 3), 4),
    (3, 5, (1, 1), (1, 1), [(0, 0), (0, 0)], (1, 1), 1),
    (4, 6, (1, 1), (1, 1), [(0, 0), (0, 0)], (1, 1), 2),
    (3, 5, (1, 1), (2, 2), [(0, 0), (0, 0)], (1, 1), 1),
    (2, 2, (7, 8), (1, 1), [(0, 0), (0, 0)], (1, 1), 1),
]


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("shape", [(2, None, 7, 8), ("n", None, 7, 8), ("n", None, "h", "w")], ids=str)
def test_a_convolution_is_its_definition(compute: Compute, rng: np.random.Generator, case: Any, shape: tuple[Any, ...]):
    channels, outputs, kernel, stride, padding, dilation, groups = case
    x = rng.integers(-4, 5, (2, channels, 7, 8)).astype(np.float32)
    weight = rng.integers(-4, 5, (outputs, channels // groups, *kernel)).astype(np.float32)
    bias = rng.integers(-4, 5, outputs).astype(np.float32)
    actual = compute(
        lambda x, w, b: conv2d(x, w, b, stride, padding, dilation, groups),
        x,
        weight,
        bias,
        shapes=[tuple(channels if dim is None else dim for dim in shape), weight.shape, bias.shape],
    )
    expected = convolve(x, weight, stride, padding, dilation, groups) + bias[:, None, None]
    np.testing.assert_array_equal(actual, expected)


def test_a_convolution_has_any_number_of_spatial_axes(compute: Compute, rng: np.random.Generator):
    x, weight = rng.standard_normal((2, 3, 9)), rng.standard_normal((4, 3, 3))
    line = compute(lambda x, w: conv(x, w, stride=2, padding=1), x, weight)
    flat = convolve(x[:, :, None], weight[:, :, None], (1, 2), [(0, 0), (1, 1)], (1, 1), 1)[:, :, 0]
    np.testing.assert_allclose(line, flat, atol=1e-12)
    cube, kernel = rng.standard_normal((1, 2, 4, 3, 5)), rng.standard_normal((3, 2, 2, 1, 2))
    windows = np.lib.stride_tricks.sliding_window_view(cube, (2, 1, 2), (2, 3, 4))
    expected = np.einsum("ncdhwijk,ocijk->nodhw", windows, kernel)
    np.testing.assert_allclose(compute(conv, cube, kernel), expected, atol=1e-12)


def test_a_convolution_is_one_pad_one_view_and_one_sum():
    builder = Builder()
    n = builder.symbol("n", 1, 8)
    x, w = builder.input("float32", (n, 4, 8, 8)), builder.input("float32", (6, 2, 3, 3))
    builder.output(conv2d(x, w, padding=1, stride=2, groups=2))
    nodes = builder.document()["nodes"][2:]
    assert [node["node"] for node in nodes] == [
        "pad",
        "view",
        "reshape",
        "expand",
        "expand",
        "binop",
        "reduce_axis",
        "reshape",
    ]
    tracker = nodes[1]["shape_tracker"]
    assert tracker["shape"] == ["n", 2, 1, 4, 4, 2, 3, 3]
    assert tracker["views"] == [
        {"shape": tracker["shape"], "strides": [400, 200, 0, 20, 2, 100, 10, 1], "offset": 0, "mask": None}
    ]
    assert nodes[6]["axes"] == [5, 6, 7]


def test_a_kernel_of_size_1_needs_no_view():
    builder = Builder()
    builder.output(conv2d(builder.input("float32", (2, 4, 8, 8)), builder.input("float32", (6, 4, 1, 1))))
    assert "view" not in [node["node"] for node in builder.document()["nodes"]]


@pytest.mark.parametrize(
    ("x", "w", "options"),
    [
        ((1, 3, 8, 8), (4, 2, 3, 3), {}),
        ((1, 3, 8, 8), (4, 1, 3, 3), {"groups": 3}),
        ((1, 4, 8, 8), (4, 4, 3, 3), {"groups": 0}),
        ((1, 3, 8), (4, 3, 3), {}),
        ((1, 3, 8, 8), (4, 3, 9, 9), {}),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"stride": 0}),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"padding": -1}),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"padding": [1]}),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"dilation": (1, 1, 1)}),
    ],
)
def test_a_convolution_that_does_not_fit_is_refused(x: tuple[int, ...], w: tuple[int, ...], options: dict[str, Any]):
    builder = Builder()
    with pytest.raises(InvalidGraphError):
        conv2d(builder.input("float32", x), builder.input("float32", w), **options)


def test_an_image_too_small_for_the_kernel_is_refused_at_the_call():
    builder = Builder()
    h = builder.symbol("h", 1, 16)
    builder.output(conv2d(builder.input("float32", (1, 1, h, 8)), builder.input("float32", (1, 1, 3, 3))))
    graph = builder.graph()
    weight = np.ones((1, 1, 3, 3), np.float32)
    assert evaluate(graph, np.ones((1, 1, 3, 8), np.float32), weight, h=3)[0].shape == (1, 1, 1, 6)
    with pytest.raises(CallInputError):
        evaluate(graph, np.ones((1, 1, 1, 8), np.float32), weight, h=1)


def windows_of(
    length: int, size: int, stride: int, pads: tuple[int, int], dilation: int, ceil: bool
) -> list[list[int]]:
    """The positions, in the padded axis, that each window of one axis covers; those past the padding are included."""
    reach = (size - 1) * dilation + 1
    total = length + sum(pads)
    count = (total - reach + (stride - 1 if ceil else 0)) // stride + 1
    starts = [start for start in range(0, count * stride, stride) if not ceil or start < pads[0] + length]
    return [[start + tap * dilation for tap in range(size)] for start in starts]


def pool(
    x: Array, kind: str, size: Any, stride: Any, pads: Any, dilation: Any, ceil: bool, count_padding: bool
) -> Array:
    """Pooling as its definition reads: the mean or maximum over the positions of each window that count."""
    rows, columns = (windows_of(x.shape[2 + a], size[a], stride[a], pads[a], dilation[a], ceil) for a in (0, 1))
    result = np.zeros((*x.shape[:2], len(rows), len(columns)), x.dtype)
    for i, j in itertools.product(range(len(rows)), range(len(columns))):
        positions = [(r - pads[0][0], c - pads[1][0]) for r in rows[i] for c in columns[j]]
        inside = [(r, c) for r, c in positions if 0 <= r < x.shape[2] and 0 <= c < x.shape[3]]
        values = np.array([x[:, :, r, c] for r, c in inside])
        if kind == "max":
            result[:, :, i, j] = values.max(0)
            continue
        counted = [
            (r, c)
            for r, c in positions
            if -pads[0][0] <= r < x.shape[2] + pads[0][1] and -pads[1][0] <= c < x.shape[3] + pads[1][1]
        ]
        result[:, :, i, j] = values.sum(0) / len(counted if count_padding else inside)
    return result


POOLINGS = [
    # size, stride, pads, dilation, ceil
    ((2, 2), (2, 2), [(0, 0), (0, 0)], (1, 1), False),
    ((3, 3), (2, 2), [(1, 1), (1, 1)], (1, 1), False),
    ((3, 2), (1, 2), [(0, 1), (1, 0)], (1, 1), False),
    ((3, 3), (2, 2), [(0, 0), (0, 0)], (1, 1), True),
    ((2, 3), (3, 2), [(1, 1), (1, 1)], (1, 1), True),
    ((2, 2), (1, 1), [(1, 1), (0, 0)], (2, 3), False),
    ((3, 3), (3, 3), [(1, 1), (1, 1)], (2, 1), True),
    ((2, 2), (2, 2), [(1, 1), (1, 1)], (1, 1), True),
]


@pytest.mark.parametrize("shape", [(2, 3, 7, 8), ("n", 3, 7, 8), ("n", 3, "h", "w")], ids=str)
@pytest.mark.parametrize("case", POOLINGS, ids=str)
def test_pooling_is_its_definition(compute: Compute, rng: np.random.Generator, case: Any, shape: tuple[Any, ...]):
    size, stride, pads, dilation, ceil = case
    x = (rng.standard_normal((2, 3, 7, 8)) - 3).astype(np.float32)
    expected = pool(x, "max", size, stride, pads, dilation, ceil, False)
    actual = compute(lambda x: max_pool2d(x, size, stride, pads, dilation, ceil), x, shapes=[shape])
    np.testing.assert_array_equal(actual, expected)
    for count_padding in (False, True):
        expected = pool(x, "mean", size, stride, pads, dilation, ceil, count_padding)
        actual = compute(
            lambda x: avg_pool(x, size, stride, pads, dilation, ceil, count_padding, rank=2),  # noqa: B023
            x,
            shapes=[shape],
        )
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float64])
def test_the_padding_of_a_maximum_never_wins(compute: Compute, dtype: type):
    x = np.full((1, 1, 2, 2), np.iinfo(dtype).min if dtype is not np.float64 else -np.inf).astype(dtype)
    np.testing.assert_array_equal(compute(lambda x: max_pool2d(x, 2, 2, 1), x), x)


def test_pooling_has_any_number_of_spatial_axes(compute: Compute, rng: np.random.Generator):
    x = rng.standard_normal((2, 3, 8))
    np.testing.assert_array_equal(compute(lambda x: max_pool(x, 2, rank=1), x), x.reshape(2, 3, 4, 2).max(-1))
    cube = rng.standard_normal((2, 4, 4, 4))
    expected = cube.reshape(2, 2, 2, 2, 2, 2, 2).mean((2, 4, 6))
    np.testing.assert_allclose(compute(lambda x: avg_pool(x, 2, rank=3), cube), expected)


def test_a_mean_over_halves_is_rounded_once(compute: Compute, rng: np.random.Generator):
    x = rng.standard_normal((1, 2, 6, 6)).astype(np.float16)
    expected = x.astype(np.float32).reshape(1, 2, 3, 2, 3, 2).mean((3, 5)).astype(np.float16)
    np.testing.assert_array_equal(compute(lambda x: avg_pool2d(x, 2), x), expected)


def test_a_mean_of_integers_is_refused():
    with pytest.raises(InvalidGraphError, match="avg_pool"):
        avg_pool2d(Builder().input("int32", (1, 1, 4, 4)), 2)
