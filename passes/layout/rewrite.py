"""Rewrite the ops of values in blocks of channels to blocks, and convert back for all other readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dialect.memory import ContiguousOp
from dialect.mlir import ir
from dialect.movement import CatOp, PadOp
from dialect.types import tensor_type, type_of
from tensorkiln.expr import Dim, floordiv

from ..decompose import builder
from ..values import Function, Value
from .choose import Chosen, places_of
from .long_windows import stored_with


def rewrite(graph: ir.Operation, function: Function, chosen: Chosen, block: int) -> None:
    """Rewrite the graph in place so that the chosen values are in blocks."""
    operations = [op.operation for op in graph.regions[0].blocks[0].operations]
    values: dict[ir.Value, Value] = dict(zip(graph.regions[0].blocks[0].arguments, function.arguments, strict=True))
    values |= {operations[value.position].results[0]: value for value in function.values}
    _Rewriter(values, chosen, block).run(operations)


@dataclass
class _Rewriter:
    values: dict[ir.Value, Value]
    chosen: Chosen
    block: int
    blocked: dict[ir.Value, ir.Value] = field(default_factory=dict[Any, Any])
    plain: dict[tuple[ir.Value, bool], ir.Value] = field(default_factory=dict[Any, Any])

    def run(self, operations: Sequence[ir.Operation]) -> None:
        replaced: list[ir.Operation] = []
        for operation in operations:
            value = self.values.get(operation.results[0]) if len(operation.results) == 1 else None
            with ir.InsertionPoint(operation), operation.location:
                if value is not None and (value in self.chosen.axes or value in self.chosen.depths):
                    made = self._made(operation, value)
                    if value in self.chosen.axes:
                        self.blocked[operation.results[0]] = made
                    else:
                        self.values[made] = value
                        operation.results[0].replace_all_uses_with(made)
                    replaced.append(operation)
                    continue
                is_reader = value in self.chosen.readers
                for place, operand in enumerate(operation.operands):
                    if operand in self.blocked:
                        operation.operands[place] = self._plain(operand, is_stored=not is_reader)
                if value is not None and value.kind == "pad" and value in self.chosen.summed:
                    self._store(operation)
        for operation in reversed(replaced):
            operation.erase()

    def _store(self, operation: ir.Operation) -> None:
        """Store a padded image at the start of a region."""
        with ir.InsertionPoint.after(operation):
            padded = operation.results[0]
            stored = ContiguousOp.make([padded], type_of(padded))
            self.values[stored.results[0]] = self.values[padded]
            padded.replace_all_uses_except(stored.results[0], stored)

    def _made(self, operation: ir.Operation, value: Value) -> ir.Value:
        """The op over blocks."""
        if value.kind == "reduce_axis":
            return self._reduction(operation, value)
        axis = self.chosen.axes[value]
        shape = self._shape(value.shape, axis)
        if value.kind == "reshape":
            return builder.reshape(self.blocked[operation.operands[0]], shape)
        if value.kind == "permute":
            order = value.ints("axes_permutation")
            return builder.permute(self.blocked[operation.operands[0]], (*order, len(order)))
        operands = [self._in_blocks(operand, axis) for operand in operation.operands]
        kind = builder.typed(operation.results[0], shape)
        if value.kind == "pad":
            padded = PadOp.make(operands, kind, pad_width=(*value.dim_pairs("pad_width"), (0, 0))).results[0]
            return ContiguousOp.make([padded], kind).results[0] if value in self.chosen.summed else padded
        if value.kind == "cat":
            return CatOp.make(operands, kind, axis=value.int("axis") % len(value.shape)).results[0]
        attributes = dict(operation.attributes.items())
        return ir.Operation.create(
            operation.name, results=[tensor_type(kind)], operands=operands, attributes=attributes
        ).results[0]

    def _shape(self, shape: Sequence[Dim], axis: int) -> tuple[Dim, ...]:
        return (*shape[:axis], floordiv(shape[axis], self.block), *shape[axis + 1 :], self.block)

    def _in_blocks(self, operand: ir.Value, axis: int) -> ir.Value:
        value = self.values[operand]
        if operand in self.blocked and self.chosen.axes[value] == axis:
            return self.blocked[operand]
        plain = self._plain(operand, is_stored=False)
        rank = len(value.shape)
        return self._moved(plain, axis, None, range(rank), ()) if rank else plain

    def _reduction(self, operation: ir.Operation, value: Value) -> ir.Value:
        """Reduce over the channels inside a block last if it sums over channels; else reduce each one separately."""
        (operand,) = value.operands
        axes = value.ints("axes")
        kept = [axis for axis in range(len(operand.shape)) if axis not in axes]
        lane = kept[places_of(value).index(self.chosen.axes[value])] if value in self.chosen.axes else None
        split = self.chosen.depths.get(value)
        depth = [*(axis for axis in axes if axis != split), *(axis for axis in axes if axis == split)]
        (source,) = operation.operands

        def moved(plain: ir.Value) -> ir.Value:
            used = self.chosen.weights.get(self.values[plain]) if plain in self.values else None
            if used is None:
                return self._moved(self._plain(plain, is_stored=False), lane, split, kept, depth)
            extents = enumerate(type_of(plain).shape)
            once = [(0, extent if f"d{axis}" in used or axis == split else 1) for axis, extent in extents]
            return stored_with(self._moved(builder.shrink(plain, once), lane, split, kept, depth), len(kept))

        if self.chosen.is_product(operand):
            product = source.owner
            factors = [moved(factor) for factor in product.operands]
            shape = [
                one if other == 1 else other
                for one, other in zip(*(type_of(factor).shape for factor in factors), strict=True)
            ]
            factors = [builder.expand(factor, shape) for factor in factors]
            attributes = dict(product.attributes.items())
            whole = ir.Operation.create(
                product.name, results=[factors[0].type], operands=factors, attributes=attributes
            ).results[0]
        else:
            whole = moved(source)
        count = len(depth) + (split is not None)
        extents = type_of(whole).shape
        first = len(extents) - count
        sums = builder.reduce(value.fields["reduce_op_kind"], whole, range(first, len(extents)), extents[:first])
        shape = value.shape if lane is None else self._shape(value.shape, self.chosen.axes[value])
        return builder.reshape(sums, shape)

    def _moved(
        self, value: ir.Value, lane: int | None, split: int | None, kept: Sequence[int], depth: Sequence[int]
    ) -> ir.Value:
        """Reorder to the dimensions `kept`, the inner dimension of `lane`, then `depth`, and the inner dimension of
        `split`.
        """
        shape: list[Dim] = []
        at: dict[int, int] = {}
        for axis, extent in enumerate(type_of(value).shape):
            at[axis] = len(shape)
            shape += [floordiv(extent, self.block), self.block] if axis in (lane, split) else [extent]
        inner = [[] if axis is None else [at[axis] + 1] for axis in (lane, split)]
        order = [*(at[axis] for axis in kept), *inner[0], *(at[axis] for axis in depth), *inner[1]]
        return builder.permute(builder.reshape(value, shape), order)

    def _plain(self, value: ir.Value, *, is_stored: bool) -> ir.Value:
        """The value converted back from blocks, in its original shape; stored so, unless only movement reads it."""
        if value not in self.blocked:
            return value
        if (value, is_stored) not in self.plain:
            blocked, axis = self.blocked[value], self.chosen.axes[self.values[value]]
            rank = type_of(value).rank
            with ir.InsertionPoint.after(value.owner), value.owner.location:
                back = builder.permute(blocked, [*range(axis + 1), rank, *range(axis + 1, rank)])
                if is_stored:
                    back = ContiguousOp.make([back], type_of(back)).results[0]
                self.plain[value, is_stored] = builder.reshape(back, type_of(value).shape)
        return self.plain[value, is_stored]
