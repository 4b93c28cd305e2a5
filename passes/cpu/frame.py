"""The context in which a strategy emits a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dialect.mlir import ir

from .machine import Machine


@dataclass(frozen=True, slots=True)
class Frame:
    """The body function of a kernel; code is emitted at the end of its `entry` block.

    `buffers` are the kernel's pointers, scratch last; `symbols` the values of the graph's symbols. The work-groups to
    run are `first .. last - 1`. `linalg` is the linalg function that defines what the kernel computes.
    """

    entry: ir.Block
    buffers: Sequence[ir.Value]
    symbols: Mapping[str, ir.Value]
    first: ir.Value
    last: ir.Value
    machine: Machine
    linalg: ir.Operation
