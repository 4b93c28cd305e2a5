"""The rows: functions, inputs and expected results. Imports only NumPy, since every peer's environment loads it.

Each peer's own file has its implementation of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
Shape: TypeAlias = tuple[int, ...]

EPSILON = 1e-5
"""The epsilon of layer normalization."""

LARGE, MEDIUM = 1 << 24, 1 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """A function of float32 arrays of `shapes`; `expected` computes it in float64 from the same arrays.

    `small` are shapes for tests. `weights` are the positions of inputs that are constant between calls, which some
    peers get at compile time. `scales` are factors of the inputs. With `below`, the last input has int32 indices below
    the length of the first.
    """

    name: str
    meaning: str
    shapes: tuple[Shape, ...]
    small: tuple[Shape, ...]
    expected: Callable[..., Array]
    weights: tuple[int, ...] = ()
    scales: tuple[float, ...] = ()
    below: bool = False

    def inputs(self, *, is_small: bool = False) -> list[Array]:
        """The inputs; every call returns the same."""
        rng = np.random.default_rng(0)
        shapes = self.small if is_small else self.shapes
        scales = self.scales or (1.0,) * len(shapes)
        arrays: list[Array] = [
            rng.standard_normal(shape, np.float32) * np.float32(scale)
            for shape, scale in zip(shapes, scales, strict=True)
        ]
        if self.below:
            arrays[-1] = rng.integers(0, len(arrays[0]), shapes[-1], dtype=np.int32)
        return arrays


def _double(array: Array) -> Array:
    return array.astype(np.float64)


def _chain(x: Array) -> Array:
    x = _double(x)
    return np.where(x > 0, np.exp2(x) * 0.5 + np.sqrt(np.abs(x)), x * x - 1)


def _softmax(x: Array) -> Array:
    powers = np.exp(_double(x) - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _layer_norm(x: Array, scale: Array, bias: Array) -> Array:
    centred = _double(x) - _double(x).mean(-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, -1, keepdims=True) + EPSILON) * scale + bias


def _product(a: Array, b: Array) -> Array:
    return _double(a) @ _double(b)


def _perceptron(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    return _softmax(_product(np.maximum(_product(x, w1) + b1, 0), w2) + b2)


def _attention(q: Array, k: Array, v: Array) -> Array:
    return _softmax(_product(q, np.swapaxes(k, -1, -2)) / 8) @ v


def convolution(x: Array, weight: Array) -> Array:
    """A 3x3 convolution with padding 1, as a product with copied windows, in the inputs' dtype."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    images, channels, rows, columns, *_ = windows.shape
    seen = windows.transpose(0, 1, 4, 5, 2, 3).reshape(images, channels * 9, rows * columns)
    return (weight.reshape(len(weight), -1) @ seen).reshape(images, len(weight), rows, columns)


def _square(size: int) -> Row:
    return Row(f"M1_{size}", f"product of {size}x{size}", ((size, size),) * 2, ((24, 24),) * 2, _product, (1,))


_MATRIX, _SMALL = (4096, 1024), (16, 64)

ROWS = (
    Row("E1_1M", "x > 0 ? exp2(x) / 2 + sqrt(abs(x)) : x² − 1, 1M", ((MEDIUM,),), ((512,),), _chain),
    Row("E1_16M", "the same of 16M", ((LARGE,),), ((512,),), _chain),
    Row(
        *("E2", "relu(x + bias), 4096x1024", (_MATRIX, (1024,)), (_SMALL, (64,))),
        lambda x, bias: np.maximum(_double(x) + bias, 0),
        (1,),
    ),
    Row("R1", "row sums of 4096x1024", (_MATRIX,), (_SMALL,), lambda x: _double(x).sum(-1)),
    Row("R2", "column sums of 4096x1024", (_MATRIX,), (_SMALL,), lambda x: _double(x).sum(0)),
    Row("R3", "sum of 16M", ((LARGE,),), ((8192,),), lambda x: np.asarray(_double(x).sum())),
    Row("S1", "softmax of the rows of 4096x1024", (_MATRIX,), (_SMALL,), _softmax),
    Row(
        *("L1", "layer norm of the rows of 4096x1024", (_MATRIX, (1024,), (1024,)), (_SMALL, (64,), (64,))),
        *(_layer_norm, (1, 2)),
    ),
    _square(512),
    _square(1024),
    _square(2048),
    Row(
        *("M2", "32 products of 128x64 and 64x128", ((32, 128, 64), (32, 64, 128)), ((2, 8, 16), (2, 16, 8))),
        *(_product, (1,)),
    ),
    Row("M3", "4096x4096 by a vector", ((4096, 4096), (4096,)), ((64, 64), (64,)), _product, (0,)),
    Row(
        *("P1", "softmax(relu(x·w + b)·w + b), 64x784, 512, 10"),
        ((64, 784), (784, 512), (512,), (512, 10), (10,)),
        ((8, 32), (32, 16), (16,), (16, 10), (10,)),
        *(_perceptron, (1, 2, 3, 4), (1.0, 0.05, 1.0, 0.05, 1.0)),
    ),
    Row("A1", "attention, 8 heads of 512x64", ((1, 8, 512, 64),) * 3, ((1, 2, 16, 64),) * 3, _attention),
    Row(
        *("C1", "3x3 convolution, 64 to 64 channels of 56x56", ((1, 64, 56, 56), (64, 64, 3, 3))),
        *(((1, 4, 8, 8), (4, 4, 3, 3)), lambda x, weight: convolution(_double(x), _double(weight)), (1,)),
    ),
    Row("T1", "4096x4096 transposed", ((4096, 4096),), ((64, 64),), np.transpose),
    Row(
        *("G1", "1M rows out of 100 000 of 16", ((100_000, 16), (MEDIUM,)), ((50, 16), (80,))),
        *(lambda table, places: table[places], (), (), True),
    ),
    Row("O1", "a + b of 16 elements", ((16,), (16,)), ((16,), (16,)), np.add),
)

BY_NAME = {row.name: row for row in ROWS}
