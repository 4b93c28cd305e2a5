"""What a kind of target is compiled with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensorkiln.expr import Dim
from tensorkiln.schedule import KernelItem

from .codegen.assembly import Assembly
from .schedule.cost import Machine
from .stage import Stage


@dataclass(frozen=True, slots=True)
class Launch:
    """`groups` work-groups of `threads` threads, None where a work-group is one call of the kernel.

    `static_shared_bytes` and `dynamic_shared_bytes` are the shared memory of a work-group that the kernel takes by
    itself and that the launch must give it; `alignment` is what the address of every buffer must be a multiple of, in
    bytes, 0 meaning its element size.
    """

    groups: Dim
    threads: int | None = None
    static_shared_bytes: int = 0
    dynamic_shared_bytes: Dim = 0
    alignment: int = 0


@dataclass(frozen=True, slots=True)
class BackEnd:
    """`pipeline` takes a module from the kiln dialect to the LLVM dialect, `emit` LLVM IR text to an artifact.

    `listing` gives an artifact, and the LLVM IR that it is of, as text to be read, in the assembler's language. It
    takes a number for each line of the LLVM IR, and gives those of the lines of its text: of which they come from.

    `launch` says how a kernel with this schedule is started, `machine` what is known of what runs it. `assemble` makes
    of an artifact what a device runs as it is; None where that was not asked for, or the artifact is that already.
    """

    pipeline: tuple[Stage, ...]
    emit: Callable[[str], bytes]
    launch: Callable[[KernelItem], Launch]
    machine: Machine
    listing: Callable[[str, bytes, Sequence[int]], tuple[str, list[int]]]
    assemble: Callable[[bytes], Assembly] | None = None
