"""DFT, STFT, and the tables of mel filters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from ... import build
from ...build import Tensor
from ..composed.complex_numbers import Complex, from_pairs, pairs
from ..composed.fourier import from_half, transform
from .node import Node
from .value import Value

MAX_FRAMED = 1 << 24
"""The most elements of all frames of a signal, or of a mel table; the frames' positions are a table, too."""


def _parts(node: Node, signal: Tensor) -> Complex | Tensor:
    """The signal without its last axis, which holds a real part, or a real and an imaginary one."""
    if signal.shape[-1] not in (1, 2):
        node.fail(f"a signal of {signal.shape[-1]} parts is neither real nor complex")
    return from_pairs(signal) if signal.shape[-1] == 2 else signal[..., 0]


def _of_length(x: Tensor, length: int) -> Tensor:
    """`x` truncated or zero-padded to `length` along the last axis but one."""
    extent = x.shape[-2]
    assert isinstance(extent, int), "the signal's length is known"
    edges = [(0, 0)] * (x.rank - 2)
    return x[..., :length, :] if extent >= length else x.pad([*edges, (0, length - extent), (0, 0)])


def _transformed(node: Node, signal: Tensor, is_inverse: bool) -> Tensor:
    """The Fourier transform along the last axis but one."""
    return pairs(transform(_parts(node, signal), is_inverse, node.parameter, node.fail))


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
    if length < 1:
        node.fail(f"a transform of {length} elements is of none")
    signal = build.moveaxis(x, place, -2)
    if inverse and onesided:
        half = _parts(node, _of_length(signal, length // 2 + 1))
        half = half if isinstance(half, Complex) else Complex(half, build.zeros(x.builder, half.shape, half.dtype))
        return build.moveaxis(from_half(half, length, node.parameter, node.fail).unsqueeze([-1]), -2, place)
    result = _transformed(node, _of_length(signal, length), inverse)
    kept = result[..., : length // 2 + 1, :] if onesided else result
    return build.moveaxis(kept, -2, place)


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
    if not 0 < length <= extent or step < 1:
        node.fail(f"frames of {length} elements, {step} apart, do not fit a signal of {extent}")
    count = (extent - length) // step + 1
    if count * length > MAX_FRAMED:
        node.fail(f"{count} frames of {length} elements are more than the {MAX_FRAMED} that are framed")
    positions = np.arange(count)[:, None] * step + np.arange(length)
    frames = build.take(signal, node.parameter(positions.astype(np.int64)), 1)
    if window is not None:
        frames = frames * window.unsqueeze([1])
    result = _transformed(node, frames, False)
    return result[..., : length // 2 + 1, :] if node.integer("onesided", 1) else result


def mel_weight_matrix(node: Node) -> Value:
    """Triangular filters with corners evenly spaced in mel (O'Shaughnessy 1987), in the bins that ONNX specifies."""
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
