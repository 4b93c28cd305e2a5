"""What a strategy finds when it emits a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dialect.mlir import arith, ir
from passes.emit.index_emission import Division, IndexEmitter
from passes.loops.index_space import IndexSpace
from tensorkiln.expr import Dim

from .machine import Machine

GROUP, THREAD = "group", "thread"
"""Names of the index of the work-group and of the thread in it."""
NARROW = (1 << 31) - 1
"""The greatest index that is divided in 32 bits."""


class ThreadIndexEmitter(IndexEmitter):
    """Divides in 32 bits where that is enough: a GPU multiplies 32 bits at a time."""

    def _divided(self, divide: Division, dividend: Dim, divisor: Dim, left: ir.Value, right: ir.Value) -> ir.Value:
        if max(map(self.space.largest, (dividend, divisor))) > NARROW:
            return divide(left, right)
        word = ir.IntegerType.get_signless(32)
        result = divide(arith.index_castui(word, left), arith.index_castui(word, right))
        return arith.index_castui(ir.IndexType.get(), result)


@dataclass(frozen=True, slots=True)
class Frame:
    """A kernel function, at the end of whose `entry` block code is emitted.

    `buffers` are the pointers of the kernel's operands, those shared by its work-groups last, and `alignments` what
    their addresses are multiples of, in bytes; `shared` the arrays of one work-group; `names` the values of the graph's
    symbols and of `GROUP` and `THREAD`. `threads` run a work-group. `linalg` is the function that says what the kernel
    computes.
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
        """An emitter of what the code of a thread knows from the start."""
        return ThreadIndexEmitter(space, self.names)
