"""The code generator of a kind of target."""

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
    """`groups` work-groups of `threads` threads; with None a work-group is one call of the kernel.

    `static_shared_bytes` of shared memory per work-group are reserved by the kernel itself, and the launch must provide
    `dynamic_shared_bytes`. `alignment` is the required alignment of every buffer in bytes; 0 means its element size.
    """

    groups: Dim
    threads: int | None = None
    static_shared_bytes: int = 0
    dynamic_shared_bytes: Dim = 0
    alignment: int = 0


@dataclass(frozen=True, slots=True)
class BackEnd:
    """`pipeline` takes a module from the kiln dialect to the LLVM dialect, `emit` the LLVM IR of a part to an artifact.

    `listing` returns the artifacts as assembler text, given the whole LLVM IR. It takes a number for each line of the
    LLVM IR, and returns the number for each line of the text. `launch` gives the launch parameters of a schedule,
    `machine` is the machine model. `prepares_loops` says whether the target's runtimes run once what the body of a loop
    prepares. `assemble` turns an artifact into device code; None if that was not requested, or is not needed.
    """

    pipeline: tuple[Stage, ...]
    emit: Callable[[str], bytes]
    launch: Callable[[KernelItem], Launch]
    machine: Machine
    listing: Callable[[str, Sequence[bytes], Sequence[int]], tuple[str, list[int]]]
    prepares_loops: bool = False
    assemble: Callable[[bytes], Assembly] | None = None
