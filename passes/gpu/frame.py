"""The context in which a strategy emits a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dialect.mlir import arith, ir
from passes.emit.index_emission import Division, IndexEmitter
from passes.loops.index_space import IndexSpace
from tensorkiln.expr import Dim

from .machine import Machine

GROUP, THREAD = "group", "thread"
"""Index names of the work-group, and of the thread in it."""
NARROW = (1 << 31) - 1
"""The largest index that is divided in 32 bits."""


class ThreadIndexEmitter(IndexEmitter):
    """Divides in 32 bits where possible: a GPU multiplies 32 bits at a time."""

    def _divided(self, divide: Division, dividend: Dim, divisor: Dim, left: ir.Value, right: ir.Value) -> ir.Value:
        if max(map(self.space.largest, (dividend, divisor))) > NARROW:
            return divide(left, right)
        word = ir.IntegerType.get_signless(32)
        result = divide(arith.index_castui(word, left), arith.index_castui(word, right))
        return arith.index_castui(ir.IndexType.get(), result)


@dataclass(frozen=True, slots=True)
class Frame:
    """A kernel function; code is emitted at the end of its `entry` block.

    `buffers` are the pointers of the kernel's operands, buffers shared by its work-groups last, and `alignments` the
    alignments of their addresses in bytes; `shared` are the arrays of one work-group; `names` the values of the graph's
    symbols and of `GROUP` and `THREAD`. `threads` run a work-group. `linalg` is the linalg function that defines what
    the kernel computes.
    """

    entry: ir.Block
    buffers: Sequence[ir.Value]
    alignments: Sequence[int]
    shared: Sequence[ir.Value]
    names: Mapping[str, ir.Value]
    threads: int
    machine: Machine
    linalg: ir.Operation

    def index(self, space: IndexSpace) -> IndexEmitter:
        """An emitter of the indices known at the start of a thread."""
        return ThreadIndexEmitter(space, self.names)
