"""Two operators of onnx's evaluator as the specification has them.

In onnx 1.23 its own BatchNormalization of opset 9 mixes in the statistics of the batch although no statistics are asked
for, and its LRN takes the number of images for the number of channels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

Array = np.ndarray[Any, Any]


class BatchNormalization(OpRun):
    """Inference: with the given statistics."""

    op_domain = ""

    def _run(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x: Array, scale: Array, bias: Array, mean: Array, var: Array, epsilon: float, **ignored: float
    ) -> tuple[Array]:
        scale, bias, mean, var = (each.reshape(-1, 1, 1) for each in (scale, bias, mean, var))
        return ((scale * (x - mean) / np.sqrt(var + epsilon) + bias).astype(x.dtype),)


class LRN(OpRun):
    """Over the neighbours of every channel."""

    op_domain = ""

    def _run(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x: Array, alpha: float, beta: float, bias: float, size: int
    ) -> tuple[Array]:
        squares = np.pad(x * x, [(0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)])
        sums = np.lib.stride_tricks.sliding_window_view(squares, size, 1).sum(-1)
        return ((x / (bias + alpha / size * sums) ** beta).astype(x.dtype),)
