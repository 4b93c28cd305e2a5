"""reduce_window and select_and_scatter: operations on sliding windows of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as every
from typing import Final

import numpy as np

from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.build.windows import Window, plain_windows, window_counts
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

from .movement import padded
from .op import Op
from .reduction import reduced
from .running import running_total
from .table import Translator
from .value import Known, Value

MAX_TAPS: Final = 1 << 8
"""The most elements of a window of select_and_scatter; each adds nodes to the graph."""


def reduce_window(op: Op) -> Sequence[Value]:
    """The reductions of all windows."""
    count = op.result_count
    inputs, inits = op.tensors()[:count], op.operands[count:]
    rank = inputs[0].rank
    if rank == 0:
        return reduced(op, inputs, inits, [])
    ones = [1] * rank
    over = Window(
        tuple(op.integers("window_dimensions")),
        tuple(op.integers("window_strides", ones)),
        tuple(op.integers("window_dilations", ones)),
    )
    between = [gap - 1 for gap in op.integers("base_dilations", ones)]
    edges = op.pairs("padding", rank)
    if count == 1 and not any(between):
        total = running_total(op, inputs[0], inits[0], over, edges)
        if total is not None:
            return [total]
    filled = [padded(op, x, edges, between, init) for x, init in zip(inputs, inits, strict=True)]
    seen = [plain_windows(x, over) for x in filled]
    return reduced(op, seen, inits, range(rank, 2 * rank))


def _select_and_scatter(op: Op) -> Value:
    """Scatter each window's source to the element that `select` chooses; `scatter` combines sources of one element.

    Processes the elements of a window in turn, each for all windows at once.
    """
    x, source = op.tensor(0), op.tensor(1)
    initial = op.operands[2]
    rank = x.rank
    size = op.integers("window_dimensions", [1] * rank)
    strides = op.integers("window_strides", [1] * rank)
    edges = op.pairs("padding", rank)
    taps = list(every(*(range(extent) for extent in size)))
    if len(taps) > MAX_TAPS:
        op.over(f"a window has {len(taps)} elements; the limit is {MAX_TAPS}", "window_elements", MAX_TAPS, len(taps))
    none = Known(np.zeros((), x.dtype.numpy), x.dtype)
    grown = padded(op, x, edges, [0] * rank, none)
    is_there = padded(op, build.ones(op.builder, x.shape, DType.BOOL), edges, [0] * rank, _FALSE)
    counts = window_counts(grown, Window(tuple(size), tuple(strides), (1,) * rank))
    best, found = _winners(op, grown, is_there, _Taps(taps, counts, strides))
    total = op.whole(op.element(initial), grown.shape)
    for place, tap in enumerate(taps):
        is_given = _spread_tap(op, build.equal(best, place) & found, tap, strides, grown)
        (joined,) = op.lifted(1, [total, _spread_tap(op, source, tap, strides, grown)])
        total = build.where(is_given, joined, total)
    return padded(op, total, [(-low, -high) for low, high in edges], [0] * rank, initial)


_FALSE: Final = Known(np.zeros((), np.bool_), DType.BOOL)


@dataclass(frozen=True, slots=True)
class _Taps:
    """The elements of windows: their offsets in a window, and the counts and strides of windows per axis."""

    offsets: Sequence[tuple[int, ...]]
    counts: Sequence[Dim]
    strides: Sequence[int]

    def of(self, x: Tensor, place: int) -> Tensor:
        """The element at offset number `place` of every window."""
        ends = [at + (count - 1) * step + 1 for at, count, step in self._along(place)]
        return x[tuple(slice(at, end, step) for (at, _, step), end in zip(self._along(place), ends, strict=True))]

    def _along(self, place: int) -> list[tuple[int, Dim, int]]:
        return list(zip(self.offsets[place], self.counts, self.strides, strict=True))


def _winners(op: Op, x: Tensor, is_there: Tensor, taps: _Taps) -> tuple[Tensor, Tensor]:
    """The number of the offset that each window selects, and whether any of its elements is not padding."""
    value, found = taps.of(x, 0), taps.of(is_there, 0)
    best = build.zeros(op.builder, value.shape, DType.INT32)
    for place in range(1, len(taps.offsets)):
        own, present = taps.of(x, place), taps.of(is_there, place)
        (keeps,) = op.lifted(0, [value, own])
        replaces = present & ~(found & keeps)
        value, best = build.where(replaces, own, value), build.where(replaces, place, best)
        found = found | present
    return best, found


def _spread_tap(op: Op, source: Tensor, tap: Sequence[int], strides: Sequence[int], grown: Tensor) -> Tensor:
    """`source` at the element at offset `tap` of every window, and 0 or false elsewhere."""
    reached = [at + (count - 1) * step + 1 for at, count, step in zip(tap, source.shape, strides, strict=True)]
    edges = [(at, dim - end) for at, dim, end in zip(tap, grown.shape, reached, strict=True)]
    nothing = Known(np.zeros((), source.dtype.numpy), source.dtype)
    return padded(op, source, edges, [step - 1 for step in strides], nothing)


OPERATORS: Final[dict[str, Translator]] = {
    "stablehlo.reduce_window": reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
}
