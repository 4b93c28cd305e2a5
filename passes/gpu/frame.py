"""What a strategy finds when it emits a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dialect.mlir import ir

from .machine import Machine

GROUP, THREAD = "group", "thread"
"""Names of the index of the work-group and of the thread in it."""


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
