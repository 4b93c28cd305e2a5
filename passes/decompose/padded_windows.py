"""kiln -> kiln: leave out the places of windows that only ever read padding, as of convolutions with wide dilations.

A window of 3 places, 36 pixels apart, in an image of 10 x 12 reads the image with its middle place alone. The terms of
the others are zero times a weight: zero, or NaN, which is summed from the weights alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from dialect.elementwise import BinopOp, TernaryOp
from dialect.memory import ContiguousOp
from dialect.mlir import ir
from dialect.module import graph_function
from dialect.movement import ExpandOp, PadOp, ViewOp
from dialect.types import type_of
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim
from tensorkiln.nodes import BinopKind, ReduceKind, ShapeTracker, TernaryKind, ViewSpec

from ..loops.accesses import loads
from ..loops.index_space import IndexSpace, linear_form
from ..loops.scalar_dag import Interner
from ..trace.tracer import Tracer
from ..trace.traces import TRACES
from ..values import Range, Value, read_function, read_symbols
from . import builder

Limits = Sequence[tuple[Dim, Dim]]


def leave_padding_out(module: ir.Module) -> None:
    """Rewrite the sums of products of `@graph` whose windows have places that only read padding."""
    graph = graph_function(module).operation
    block = graph.regions[0].blocks[0]
    if not any(isinstance(op, PadOp) and _is_wide(op) for op in block.operations):
        return
    function = read_function(graph, read_symbols(module))
    operations = [op.operation for op in block.operations]
    values: dict[ir.Value, Value] = dict(zip(block.arguments, function.arguments, strict=True))
    values |= {operations[value.position].results[0]: value for value in function.values}
    builder.replace(block, {"kiln.reduce_axis": lambda op: _without_padding(op, values, function.symbols)})


def _is_wide(pad: Any) -> bool:
    """Whether an axis has at least as much padding on one side as it has elements."""
    extents = zip(pad.pad_width, type_of(pad.operands[0]).shape, strict=True)
    return any(isinstance(extent, int) and extent in range(1, _most(around) + 1) for around, extent in extents)


def _most(around: tuple[Dim, Dim]) -> int:
    return max((width for width in around if isinstance(width, int)), default=0)


def _without_padding(op: Any, values: dict[ir.Value, Value], symbols: Mapping[str, Range]) -> ir.Value | None:
    product = op.operands[0].owner
    is_sum = op.reduce_op_kind is ReduceKind.SUM and isinstance(product, BinopOp) and product.op is BinopKind.MUL
    shape = type_of(op.operands[0]).shape
    if not is_sum or not op.tensor.dtype.is_float or any(type_of(each).shape != shape for each in product.operands):
        return None
    for image, weights in permutations(product.operands):
        windows = _windows(image, shape, values, symbols)
        limits = None if windows is None else windows.limits(op.axes)
        apart = weights.owner.operands[0] if isinstance(weights.owner, ExpandOp) else weights
        if windows is None or limits is None or any(type_of(apart).shape[axis] != shape[axis] for axis in op.axes):
            continue
        ends = [each if axis in op.axes else (0, type_of(apart).shape[axis]) for axis, each in enumerate(limits)]
        kept = builder.shrink(apart, ends)
        # Products read the places that are left side by side.
        kept = ContiguousOp.make([kept], type_of(kept)).results[0]
        image = windows.within(limits)
        products = builder.binop(BinopKind.MUL, image, builder.expand(kept, type_of(image).shape))
        total = builder.reduce(ReduceKind.SUM, products, op.axes, op.tensor.shape)
        # The result of a later op may get the address of this one.
        del values[op.operation.results[0]]
        return builder.binop(BinopKind.ADD, total, _zeros(apart, ends, op))
    return None


def _zeros(weights: ir.Value, ends: Limits, op: Any) -> ir.Value:
    """The sums of zero times the weights outside of the limits `ends`: not zero if such a weight is infinite or NaN."""
    known = type_of(weights)
    is_true = builder.repeated(builder.number(True, DType.BOOL), [expr.sub(end, begin) for begin, end in ends])
    around = tuple((begin, expr.sub(extent, end)) for (begin, end), extent in zip(ends, known.shape, strict=True))
    inside = PadOp.make([is_true], builder.typed(weights, known.shape, DType.BOOL), pad_width=around).results[0]
    zero = builder.repeated(builder.number(0.0, known.dtype), known.shape)
    outside = TernaryOp.make([inside, zero, builder.binop(BinopKind.MUL, weights, zero)], known, op=TernaryKind.WHERE)
    sums = builder.reduce(ReduceKind.SUM, outside.results[0], op.axes, _reduced(known.shape, op))
    return builder.expand(sums, op.tensor.shape)


def _reduced(shape: Sequence[Dim], op: Any) -> list[Dim]:
    keeps = len(op.tensor.shape) == len(shape)
    return [1 if axis in op.axes else extent for axis, extent in enumerate(shape) if keeps or axis not in op.axes]


@dataclass(frozen=True)
class _Windows:
    """A factor of `shape` that reads `pad` at a linear form of its dimensions, for each dimension of `pad`."""

    pad: Any
    shape: Sequence[Dim]
    forms: Sequence[tuple[Dim, Sequence[Dim]]]

    def limits(self, axes: Sequence[int]) -> Limits | None:
        """The dimensions without the first and the last places of `axes` that only read padding; None if all stay."""
        whole: list[tuple[Dim, Dim]] = [(0, extent) for extent in self.shape]
        limits = list(whole)
        for axis in axes:
            extent = self.shape[axis]
            if isinstance(extent, int):
                read = [at for at in range(extent) if self._reads([*limits[:axis], (at, at + 1), *limits[axis + 1 :]])]
                if not read:
                    return None
                limits[axis] = read[0], read[-1] + 1
        return limits if limits != whole else None

    def within(self, limits: Limits) -> ir.Value:
        """The factor within these limits, of an image with only the padding that it reads there."""
        image = self.pad.operands[0]
        shape, around, first = type_of(image).shape, self.pad.pad_width, [0] * len(self.forms)
        kept: list[tuple[Dim, Dim]] = [(0, extent) for extent in shape]
        padding = list(around)
        for dimension, ((before, _), extent) in enumerate(zip(around, shape, strict=True)):
            span = self._span(dimension, limits)
            if span is not None and isinstance(before, int) and isinstance(extent, int):
                low, high = span[0] - before, span[1] - before
                kept[dimension] = max(low, 0), min(high + 1, extent)
                padding[dimension] = max(-low, 0), max(high + 1 - extent, 0)
                first[dimension] = span[0]
        part = image if kept == [(0, extent) for extent in shape] else builder.shrink(image, kept)
        extents = [expr.add(end - begin, *widths) for (begin, end), widths in zip(kept, padding, strict=True)]
        if any(widths != (0, 0) for widths in padding):
            part = PadOp.make([part], builder.typed(part, extents), pad_width=tuple(padding)).results[0]
        steps = [expr.product(extents[dimension + 1 :]) for dimension in range(len(extents))]
        lengths = [expr.sub(end, begin) for begin, end in limits]
        strides = [
            expr.add(0, *(expr.mul(form[1][axis], step) for form, step in zip(self.forms, steps, strict=True)))
            for axis in range(len(limits))
        ]
        bases = [expr.sub(form[0], low) for form, low in zip(self.forms, first, strict=True)]
        begins = [begin for begin, _ in limits]
        offset = expr.add(0, *map(expr.mul, (*bases, *begins), (*steps, *strides)))
        strides = [0 if length == 1 else stride for length, stride in zip(lengths, strides, strict=True)]
        view = ViewSpec.model_construct(shape=tuple(lengths), strides=tuple(strides), offset=offset, mask=None)
        tracker = ShapeTracker.model_construct(views=(view,), shape=tuple(lengths))
        return ViewOp.make([part], builder.typed(part, lengths), shape_tracker=tracker).results[0]

    def _reads(self, limits: Limits) -> bool:
        """Whether an element of the image may be read within these limits."""
        for dimension, extent in enumerate(type_of(self.pad.operands[0]).shape):
            before, span = self.pad.pad_width[dimension][0], self._span(dimension, limits)
            if span is None or not isinstance(before, int) or not isinstance(extent, int):
                continue
            if span[1] < before or span[0] >= before + extent:
                return False
        return True

    def _span(self, dimension: int, limits: Limits) -> tuple[int, int] | None:
        """The least and the greatest place in a padded dimension within these limits, if they are known."""
        if self.pad.pad_width[dimension] == (0, 0):
            return None
        base, strides = self.forms[dimension]
        low = high = base
        for stride, (begin, end) in zip(strides, limits, strict=True):
            if stride == 0:
                continue
            if not isinstance(stride, int) or not isinstance(begin, int) or not isinstance(end, int):
                return None
            ends = sorted((stride * begin, stride * (end - 1)))
            low, high = expr.add(low, ends[0]), expr.add(high, ends[1])
        return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def _windows(
    factor: ir.Value, shape: Sequence[Dim], values: Mapping[ir.Value, Value], symbols: Mapping[str, Range]
) -> _Windows | None:
    """How a factor reads its last wide padding, behind movement ops alone."""
    _, moves = builder.unmoved(factor)
    pads = [move for move in moves if isinstance(move, PadOp)]
    if not pads or not _is_wide(pads[-1]) or pads[-1].operation.results[0] not in values or factor not in values:
        return None
    space, nodes, names = IndexSpace(symbols), Interner(), [f"d{axis}" for axis in range(len(shape))]
    index = tuple(0 if extent == 1 else space.add(name, extent) for name, extent in zip(names, shape, strict=True))
    tracer = Tracer(space, {values[pads[-1].operation.results[0]]: 0}, TRACES, nodes)
    found = loads((tracer.element(values[factor], index),), nodes)
    if len(found) != 1 or found[0].conditions or not found[0].index:
        return None
    forms = [linear_form(dim, names) for dim in found[0].index]
    known = [form for form in forms if form is not None]
    return _Windows(pads[-1], shape, known) if len(known) == len(forms) else None
