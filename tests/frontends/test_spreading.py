"""Convolutions of images with zeros between their elements, by the filters of each phase."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder
from tensorkiln.frontends.composed.spreading import conv_of_spread
from tests import checked
from tests.compiled import compiled
from tests.passes.modules import kiln

Array = np.ndarray[Any, Any]


def expected(
    x: Array, weight: Array, steps: tuple[int, ...], padding: tuple[tuple[int, int], ...], groups: int
) -> Array:
    """By the definition: zeros between, zeros around or elements cut off, and a sum for each place of the kernel."""
    spread = np.zeros((*x.shape[:2], *((size - 1) * step + 1 for size, step in zip(x.shape[2:], steps, strict=True))))
    spread[(..., *(slice(None, None, step) for step in steps))] = x
    spread = np.pad(spread, [(0, 0), (0, 0), *((max(low, 0), max(high, 0)) for low, high in padding)])
    spread = spread[
        (
            ...,
            *(
                slice(max(-low, 0), size - max(-high, 0))
                for size, (low, high) in zip(spread.shape[2:], padding, strict=True)
            ),
        )
    ]
    kernel = weight.shape[2:]
    windows = np.lib.stride_tricks.sliding_window_view(spread, kernel, tuple(range(2, spread.ndim)))
    batch, channels, *rest = windows.shape
    grouped = windows.reshape(batch, groups, channels // groups, *rest)
    taps = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    axes = "".join(chr(ord("p") + axis) for axis in range(len(kernel)))
    found = np.einsum(f"ngc{axes}{axes.upper()},gfc{axes.upper()}->ngf{axes}", grouped, taps)
    return found.reshape(batch, weight.shape[0], *rest[: len(kernel)])


@pytest.mark.parametrize(
    ("kernel", "steps", "padding", "groups"),
    [
        ((4,), (2,), ((2, 2),), 1),
        ((2,), (2,), ((1, 1),), 2),
        ((6,), (3,), ((0, 8),), 1),
        ((6,), (3,), ((-1, -2),), 1),
        ((6,), (2,), ((9, 0),), 2),
        ((3,), (2,), ((2, 1),), 1),
        ((3,), (2,), ((-1, 2),), 1),
        ((1,), (3,), ((2, -1),), 1),
        ((1,), (1,), ((-6, 8),), 1),
        ((5,), (3,), ((4, 4),), 2),
        ((7,), (4,), ((0, 9),), 1),
        ((3,), (2,), ((-3, -1),), 1),
        ((5,), (2,), ((9, -2),), 1),
        ((1, 1), (2, 2), ((0, 1), (0, 1)), 1),
        ((3, 3), (2, 2), ((2, 1), (1, 2)), 2),
        ((3, 2), (2, 3), ((1, 2), (3, 0)), 1),
        ((3, 3), (5, 4), ((2, 2), (2, 2)), 1),
        ((4, 4), (2, 2), ((2, 2), (1, 3)), 1),
        ((2, 3), (2, 1), ((1, 1), (1, 1)), 2),
        ((4, 2), (2, 2), ((3, -1), (0, 4)), 1),
        ((2, 2, 4), (2, 1, 2), ((1, 1), (0, 0), (2, 3)), 1),
    ],
)
@pytest.mark.parametrize("least", [1, 4, None])
def test_a_convolution_of_what_is_moved_apart(
    kernel: tuple[int, ...],
    steps: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    groups: int,
    least: int | None,
) -> None:
    sizes = (5, 4, 3)[: len(kernel)]
    b = Builder("apart")
    symbols = {} if least is None else {"h": sizes[0]}
    x = b.input("float32", (2, 4, sizes[0] if least is None else b.symbol("h", least, 9), *sizes[1:]))
    weight, bias = b.parameter("float32", (6, 4 // groups, *kernel)), b.parameter("float32", (6,))
    b.output(conv_of_spread(x, weight, bias, steps, padding, [1] * len(steps), groups))
    rng = np.random.default_rng(2)
    image, taps, offsets = (
        rng.integers(-4, 5, shape).astype(np.float32) for shape in ((2, 4, *sizes), (6, 4 // groups, *kernel), (6,))
    )
    (result,) = checked.run(compiled(b.graph()), image, taps, offsets, threads=1, **symbols)
    wanted = expected(image, taps, steps, padding, groups) + offsets.reshape(6, *(1,) * len(kernel))
    np.testing.assert_array_equal(result, wanted)


def test_kernels_of_whole_steps_multiply_no_zeros() -> None:
    """A quarter of the products, of weights that are arranged before the first call."""
    b = Builder("apart")
    x, weight = b.input("float32", (1, 32, 9, 11)), b.parameter("float32", (8, 32, 4, 4))
    b.output(conv_of_spread(x, weight, None, (2, 2), [(2, 2), (2, 2)], (1, 1), 1))
    compilation = compiled(b.graph())
    assert "tensor<1x1x32x10x12x32x2x2xf32>" in str(kiln(b.graph()))
    assert compilation.program.prepare


@pytest.mark.parametrize(("kernel", "products"), [((3, 3), 9), ((1, 1), 1), ((3, 1), 3)])
def test_other_kernels_multiply_no_zeros_either(kernel: tuple[int, int], products: int) -> None:
    """Each place of the kernel meets a quarter of the results."""
    b = Builder("apart")
    x, weight = b.input("float32", (1, 8, 9, 9)), b.parameter("float32", (8, 8, *kernel))
    ahead = [(size - 1, size - 1) for size in kernel]
    b.output(conv_of_spread(x, weight, None, (2, 2), ahead, (1, 1), 1))
    graph = b.graph()
    sums = [
        prod(dim for dim in graph.types[node.out_var].shape if isinstance(dim, int))
        for node in graph.nodes
        if node.node == "binop" and node.op == "mul" and graph.types[node.out_var].dtype.is_float
    ]
    assert 0 < sum(sums) <= products * 8 * 8 * 11 * 11
