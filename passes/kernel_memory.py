"""A record of a realised kernel's arguments, kept on its function until its entry is emitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dialect.mlir import ir
from tensorkiln.buffers import Buffer
from tensorkiln.expr import Dim, from_derived_wire, to_wire
from tensorkiln.schedule import work_groups

from .attributes import decode, encode
from .schedule.attach import ScheduledKernel

MEMORY = "kiln.memory"
"""Attribute of a realised kernel's function: its arguments."""


@dataclass(frozen=True, slots=True)
class KernelMemory:
    """The arguments of a realised kernel, in order: pointers to `buffers`, by name and shape, then `symbols`.

    If a work-group is one call, the range of work-groups follows; otherwise `threads` run each. `shared` has the sizes
    of a work-group's shared arrays. There are `groups` work-groups, or none if an extent in `axes` is 0.
    """

    kernel: str
    buffers: Sequence[tuple[str, Sequence[Dim]]]
    symbols: Sequence[tuple[str, int, int]]
    groups: Dim
    axes: Sequence[Dim]
    threads: int = 0
    shared: Sequence[Dim] = ()

    def attach(self, function: Any) -> None:
        """Write the record on a function."""
        function.attributes[MEMORY] = encode(
            {
                "kernel": self.kernel,
                "buffers": [[name, list(map(to_wire, shape))] for name, shape in self.buffers],
                "symbols": [list(symbol) for symbol in self.symbols],
                "groups": to_wire(self.groups),
                "axes": list(map(to_wire, self.axes)),
                "threads": self.threads,
                "shared": [to_wire(elements) for elements in self.shared],
            }
        )

    @staticmethod
    def of(function: Any) -> KernelMemory:
        """The record on a function."""
        record = decode(function.attributes[MEMORY])
        return KernelMemory(
            record["kernel"],
            [(name, tuple(map(from_derived_wire, shape))) for name, shape in record["buffers"]],
            [(name, low, high) for name, low, high in record["symbols"]],
            from_derived_wire(record["groups"]),
            tuple(map(from_derived_wire, record["axes"])),
            record["threads"],
            [from_derived_wire(elements) for elements in record["shared"]],
        )


def memory_of(kernel: ScheduledKernel, buffers: Sequence[Buffer], threads: int = 0) -> KernelMemory:
    """The arguments of a scheduled kernel of a program with these buffers; `threads` as in `KernelMemory`."""
    used = [buffers[number] for number in kernel.step.arguments]
    space = kernel.body.space
    return KernelMemory(
        kernel.entry,
        # In the form that the body's extents have.
        [(f"{buffer.role} {buffer.id}", tuple(map(space.floored, buffer.shape))) for buffer in used],
        [(name, low, high) for name, (low, high) in kernel.body.function.symbols.items()],
        work_groups(kernel.item.context)[0],
        [kernel.item.iter.axes[number].extent for number in kernel.item.iter.mapping.block],
        threads,
        [array.elements for array in kernel.item.shared],
    )


def drop_records(module: ir.Module) -> None:
    """Remove the records from the functions of a module before translation."""
    for op in module.body.operations:
        if MEMORY in op.operation.attributes:
            del op.operation.attributes[MEMORY]
