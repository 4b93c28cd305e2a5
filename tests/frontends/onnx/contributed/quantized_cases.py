"""An LSTM with weights of 8 bits, and rows of tables of 4 and 8 bits."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from . import case
from .case import Case

_random = np.random.RandomState(11)
_normal = partial(case.normal, _random)
_codes = partial(case.codes, _random)


def _lstm(steps: int, direction: str, dtype: str, by_column: bool) -> Case:
    """3 sequences of 6 features, 4 hidden ones."""
    count, hidden = 2 if direction == "bidirectional" else 1, 4
    width = 4 * hidden
    scales = (count, width) if by_column else (count,)
    zeros = np.zeros(scales, dtype) if by_column else _random.randint(0, 9, scales).astype(dtype)
    weights = {
        "w": _codes(dtype, count, 6, width),
        "r": _codes(dtype, count, hidden, width),
        "b": _normal(count, 2 * width) * 0.3,
        "sw": _random.uniform(0.002, 0.02, scales).astype(np.float32),
        "zw": zeros,
        "sr": _random.uniform(0.002, 0.02, scales).astype(np.float32),
    }
    inputs = {"x": _normal(steps, 3, 6), "h": _normal(count, 3, hidden) * 0.5, "c": _normal(count, 3, hidden)}
    dims = {"x": ("steps", "batch", 6), "h": (count, "batch", hidden), "c": (count, "batch", hidden)}
    name = f"lstm_{steps}_{direction}_{dtype}_{'columns' if by_column else 'whole'}"
    attributes = {"hidden_size": hidden, "direction": direction}
    operands = "x w r b - h c - sw zw sr zw"
    return Case(name, "DynamicQuantizeLSTM", operands, inputs, weights, attributes, dims, ("y", "last", "cell"))


NARROW = {"t": (80, 12), "z": (3, 12)}


def _rows() -> list[Case]:
    """Tables of 12 rows and 80 columns, the last block of columns not full."""
    indices, dims = {"i": np.array([[3, 0, -1], [11, 3, 7]], np.int64)}, {"i": ("batch", "tokens")}
    scale = _random.uniform(0.01, 0.1, (12, 3)).astype(np.float32)
    cases: list[Case] = []
    for bits in (4, 8):
        table = {"t": _codes("uint8", 12, 80 * bits // 8), "s": scale, "z": _codes("uint8", 12, -(-3 * bits // 8))}
        attributes: dict[str, Any] = {"block_size": 32, "bits": bits, "gather_axis": 0, "quantize_axis": 1}
        cases += [
            Case(f"rows_{bits}{suffix}", "GatherBlockQuantized", operands, indices, table, attributes, dims)
            for suffix, operands in (("", "t i s"), ("_zero", "t i s z"))
        ]
    half = {"t": _codes("uint8", 12, 40), "s": scale.astype(np.float16)}
    attributes = {"block_size": 32, "bits": 4}
    cases.append(Case("rows_of_half", "GatherBlockQuantized", "t i s", indices, half, attributes, dims))
    for kind in (ml_dtypes.int4, ml_dtypes.uint4):
        low = 0 if kind is ml_dtypes.uint4 else -8
        typed = {name: _random.randint(low, low + 16, shape).astype(kind) for name, shape in NARROW.items()}
        weights = {**typed, "s": _random.uniform(0.01, 0.1, (3, 12)).astype(np.float32)}
        attributes = {"block_size": 32, "gather_axis": 1, "quantize_axis": 0}
        name = f"rows_of_{np.dtype(kind).name}"
        cases += [
            Case(name, "GatherBlockQuantized", "t i s", indices, weights, attributes, dims),
            Case(f"{name}_zero", "GatherBlockQuantized", "t i s z", indices, weights, attributes, dims),
        ]
    return cases


CASES = [
    _lstm(5, "forward", "int8", False),
    _lstm(4, "bidirectional", "uint8", False),
    _lstm(4, "reverse", "int8", True),
    _lstm(40, "forward", "int8", True),
    *_rows(),
]
