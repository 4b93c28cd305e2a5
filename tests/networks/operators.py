"""Three operators of onnx's evaluator with their loops in NumPy: its own take minutes for a network of this size.

They take what the networks here use: two spatial axes, explicit pads, no dilation, sizes rounded down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

Array = np.ndarray[Any, Any]
Ints = Sequence[int]


def windows(x: Array, kernel: Ints, pads: Ints | None, strides: Ints | None, fill: float) -> Array:
    """(N, C, H, W) as (N, C, rows, columns, *kernel): every position of the kernel over the padded images."""
    top, left, bottom, right = pads or (0, 0, 0, 0)
    down, across = strides or (1, 1)
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(padded, tuple(kernel), axis=(2, 3))[:, :, ::down, ::across]


def refuse(unsupported: dict[str, Any]) -> None:
    """ValueError for an attribute whose value is not its default."""
    for name, value in unsupported.items():
        plain = all(entry == 1 for entry in value) if name == "dilations" and value else value in (None, 0, "NOTSET")
        if not plain:
            raise ValueError(f"the attribute {name} = {value!r} is not among what these networks use")


class Conv(OpRun):
    """One product of matrices for each group: its weights and its windows."""

    op_domain = ""

    def _run(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        x: Array,
        weight: Array,
        bias: Array | None = None,
        *,
        group: int | None = None,
        kernel_shape: Ints | None = None,
        pads: Ints | None = None,
        strides: Ints | None = None,
        **unsupported: Any,
    ) -> tuple[Array]:
        refuse(unsupported)
        groups, (outputs, channels, *kernel) = group or 1, weight.shape
        seen = windows(x, kernel, pads, strides, 0.0)
        images, _, rows, columns, *_ = seen.shape
        grouped = seen.reshape(images, groups, channels, rows, columns, *kernel).transpose(0, 1, 2, 5, 6, 3, 4)
        columns_of_each = np.ascontiguousarray(grouped).reshape(images, groups, -1, rows * columns)
        product = weight.reshape(groups, outputs // groups, -1) @ columns_of_each
        result = product.reshape(images, outputs, rows, columns)
        return (result if bias is None else result + bias.reshape(-1, 1, 1),)


class MaxPool(OpRun):
    """The largest of each window; what lies outside the image never is."""

    op_domain = ""

    def _run(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x: Array, *, kernel_shape: Ints, pads: Ints | None = None, strides: Ints | None = None, **unsupported: Any
    ) -> tuple[Array]:
        refuse(unsupported)
        return (windows(x, kernel_shape, pads, strides, -np.inf).max((-2, -1)),)


class AveragePool(OpRun):
    """The mean of each window over those of its elements that lie in the image."""

    op_domain = ""

    def _run(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x: Array, *, kernel_shape: Ints, pads: Ints | None = None, strides: Ints | None = None, **unsupported: Any
    ) -> tuple[Array]:
        refuse(unsupported)
        sums = windows(x, kernel_shape, pads, strides, 0.0).sum((-2, -1))
        counts = windows(np.ones_like(x), kernel_shape, pads, strides, 0.0).sum((-2, -1))
        return (sums / counts,)
