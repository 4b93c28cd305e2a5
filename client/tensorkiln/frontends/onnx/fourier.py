"""DFT and STFT as products with tables of cosines and sines, and the tables of mel filters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from ... import build
from ...build import Tensor
from ...dtypes import DType
from .node import Node
from .value import Host, Value

MAX_FRAMED = 1 << 24
"""Of all frames of a signal: a table says where their elements are."""
MAX_LENGTH = 1 << 12
"""Of a transform: its table has as many rows and columns."""


def _tables(node: Node, length: int, rows: int, columns: int, sign: int) -> tuple[Host, Host]:
    """Cosines and sines of `2πnk / length`, for `rows` elements of the signal and `columns` frequencies."""
    if not 0 < length <= MAX_LENGTH:
        node.fail(f"a transform of {length} elements is of none, or of more than {MAX_LENGTH}")
    # Whole turns are taken off before the angle is rounded.
    turns = np.outer(np.arange(rows), np.arange(columns)) % length / length
    return np.cos(2 * np.pi * turns), sign * np.sin(2 * np.pi * turns)


def _transformed(node: Node, signal: Tensor, length: int, columns: int, sign: int) -> Tensor:
    """The transform along the last axis but one; the last one holds a real part and perhaps an imaginary one.

    In float64: a product with a table sums as many terms as the signal is long, where a fast transform sums a few.
    """
    rows, parts = signal.shape[-2], signal.shape[-1]
    if not isinstance(rows, int) or parts not in (1, 2):
        node.fail(f"a signal of {rows} elements of {parts} parts is not known, or neither real nor complex")
    kept, wide = min(rows, length), signal.cast(DType.FLOAT64)
    cosines, sines = (
        node.parameter(np.ascontiguousarray(table)) for table in _tables(node, length, kept, columns, sign)
    )
    real = wide[..., :kept, 0]
    left, right = real @ cosines, real @ sines
    if parts == 2:
        imaginary = wide[..., :kept, 1]
        left, right = left - imaginary @ sines, right + imaginary @ cosines
    return build.stack([left, right], -1).cast(signal.dtype)


def dft(node: Node) -> Value:
    x = node.tensor(0)
    axis = node.integer("axis", 1) if node.opset < 20 else node.known_integer(2) if node.has(2) else -2
    place = axis % x.rank
    extent = x.shape[place]
    inverse, onesided = node.integer("inverse", 0) == 1, node.integer("onesided", 0) == 1
    if not isinstance(extent, int):
        node.fail(f"the extent {extent} of axis {place} is not known")
    whole = 2 * (extent - 1) if inverse and onesided else extent
    length = node.known_integer(1) if node.has(1) else whole
    signal = build.moveaxis(x, place, -2)
    if inverse and onesided:
        # The other half of the frequencies is that of a real signal: conjugates, backwards.
        bins = length // 2 + 1
        signal = signal[..., :bins, :].pad([*((0, 0) for _ in range(x.rank - 2)), (0, max(bins - extent, 0)), (0, 0)])
        half = signal[..., 1 : (length + 1) // 2, :].flip(-2)
        signal = build.cat([signal, build.cat([half[..., :1], -half[..., 1:]], -1)], -2)
    columns = length // 2 + 1 if onesided and not inverse else length
    result = _transformed(node, signal, length, columns, 1 if inverse else -1)
    if inverse:
        result = result / float(length)
    if inverse and onesided:
        result = result[..., :1]
    return build.moveaxis(result, -2, place)


def stft(node: Node) -> Value:
    signal = node.tensor(0)
    step = node.known_integer(1)
    if signal.rank == 2:
        signal = signal.unsqueeze([-1])
    window = node.tensor(2) if node.has(2) else None
    length = node.known_integer(3) if node.has(3) else window.shape[0] if window is not None else None
    extent = signal.shape[1]
    if not isinstance(length, int) or not isinstance(extent, int):
        node.fail(f"the lengths {length} of a frame and {extent} of the signal must be known")
    count = (extent - length) // step + 1
    if count * length > MAX_FRAMED:
        node.fail(f"{count} frames of {length} elements are more than the {MAX_FRAMED} that are framed")
    positions = np.arange(count)[:, None] * step + np.arange(length)
    frames = build.take(signal, node.parameter(positions.astype(np.int64)), 1)
    if window is not None:
        frames = frames * window.unsqueeze([1])
    columns = length // 2 + 1 if node.integer("onesided", 1) else length
    return _transformed(node, frames, length, columns, -1)


def mel_weight_matrix(node: Node) -> Value:
    """Triangular filters, their corners at equal distances in mel (O'Shaughnessy 1987), as ONNX places them in bins."""
    bins, length, rate, low, high = (value.reshape(-1)[0] for value in node.hosts())
    rows = int(length) // 2 + 1
    if rows * int(bins) > MAX_FRAMED:
        node.fail(f"{rows} by {bins} filters are more than the {MAX_FRAMED} numbers that are computed here")
    mels = np.linspace(_mel(float(low)), _mel(float(high)), int(bins) + 2, endpoint=False)
    corners = (700 * (10 ** (mels / 2595) - 1) * (int(length) + 1) // int(rate)).astype(int)
    table = np.zeros((rows, int(bins)))
    for place in range(int(bins)):
        first, middle, last = corners[place : place + 3]
        if middle == first:
            table[middle, place] = 1
        else:
            rising = np.arange(first, middle + 1)
            table[rising, place] = (rising - first) / (middle - first)
        if last > middle:
            falling = np.arange(middle, last)
            table[falling, place] = (last - falling) / (last - middle)
    return table.astype(tensor_dtype_to_np_dtype(node.integer("output_datatype", TensorProto.FLOAT)))


def _mel(hertz: float) -> float:
    return float(2595 * np.log10(1 + hertz / 700))


OPERATORS: dict[str, Callable[[Node], Value]] = {"DFT": dft, "MelWeightMatrix": mel_weight_matrix, "STFT": stft}
