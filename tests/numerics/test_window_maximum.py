"""Maxima of small windows of values whose order is special: zeros of both signs, infinities, NaNs of both signs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, exp2, max_pool2d, minimum, relu
from tensorkiln.dtypes import DType
from tests import checked
from tests.compiled import compiled, runs_here
from tests.filecheck import check_ir
from tests.numerics.cases.turns import EXAMPLES
from tests.numerics.test_row_maximum import expected_maximum
from tests.passes.modules import after, output

Array = np.ndarray[Any, Any]
TARGETS = ("cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4")
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, np.copysign(np.nan, -1.0), 5e-324, -5e-324)


def relu_of(x: Array) -> Array:
    return np.where(~(x <= 0), x, 0).astype(x.dtype)


def power_of_two(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.exp2(x)


WRITES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Array], Array]]] = {
    "any": (lambda x: x, lambda x: x),
    "relu": (relu, relu_of),
    "relu6": (lambda x: minimum(relu(x), 6.0), lambda x: np.minimum(relu_of(x), x.dtype.type(6))),
    "power of two": (exp2, power_of_two),
}
WINDOWS = {"3x3": (3, 1, 0), "2x2, stride 2": (2, 2, 0), "3x3, padded": (3, 2, 1), "5x5": (5, 1, 2)}


def drawn(dtype: str) -> Array:
    """Small integers, a fourth of them replaced; whole images without NaN, or of zeros alone."""
    random = np.random.default_rng(5)
    x = random.integers(-9, 9, (1, 6, 12, 39)).astype(DType(dtype).numpy)
    special = random.choice(np.array(SPECIAL), x.shape).astype(x.dtype)
    x = np.where(random.random(x.shape) < 0.25, special, x)
    x[0, 1] = np.where(np.isnan(x[0, 1]), -1, x[0, 1])
    x[0, 2] = random.choice(np.array([0.0, -0.0, -1.0]), x[0, 2].shape, p=[0.05, 0.9, 0.05])
    x[0, 3] = -np.inf
    return x


def pooled(x: Array, size: int, stride: int, padding: int) -> Array:
    edges = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, edges, constant_values=-np.inf), (size, size), (2, 3))
    windows = windows[:, :, ::stride, ::stride]
    return expected_maximum(windows.reshape(*windows.shape[:4], -1))


def combinations() -> list[tuple[str, str, str, str]]:
    """By turns four of twelve targets and dtypes for what is written and its window, or all with KILN_EXAMPLES.

    So each target and dtype meets each that is written, and each window.
    """
    found: list[tuple[str, str, str, str]] = []
    for (place, name), (turn, window) in product(enumerate(WRITES), enumerate(WINDOWS)):
        for number, dtype in enumerate(("float32", "float64", "float16", "bfloat16")):
            start = (place + turn + number) % len(TARGETS)
            found += [(name, window, each, dtype) for each in (TARGETS if EXAMPLES > 1 else [TARGETS[start]])]
    return found


@pytest.mark.parametrize(("name", "window", "target", "dtype"), combinations())
def test_a_maximum_of_a_window_is_that_of_its_values(name: str, window: str, target: str, dtype: str) -> None:
    if not runs_here(target):
        pytest.skip(f"this processor lacks instructions of {target}")
    (write, of), (size, stride, padding), x = WRITES[name], WINDOWS[window], drawn(dtype)
    b = Builder("windows")
    graph = output(b, max_pool2d(write(b.input(dtype, x.shape)), size, stride, padding))
    found = checked.run(compiled(graph, target), x)[0].astype(np.float64)
    expected = pooled(of(x.astype(np.float64)), size, stride, padding)
    np.testing.assert_allclose(found, expected, rtol=1e-6 if x.dtype.itemsize > 2 else 1e-2, atol=0)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(expected)[is_number])


def test_a_maximum_behind_a_relu_is_one_instruction_for_each_value() -> None:
    b = Builder("windows")
    graph = output(b, max_pool2d(relu(b.input("float32", (1, 4, 16, 48))), 3))
    check_ir(
        after("realise", graph, "cpu:x86-64-v4"),
        """
        // CHECK-LABEL: func.func @kernel_0_body
        // CHECK-COUNT-9: arith.maxui {{.*}} vector<16xi32>
        // CHECK-NOT: arith.max
        // CHECK: vector.store
        """,
    )
