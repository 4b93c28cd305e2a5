"""LLVM's back ends, registered once per process, the options of its optimiser, and its use in several threads."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from typing import Final

import llvmlite.binding as llvm
from llvmlite.binding import ffi

_LONG_CALLS: Final = (
    "LLVMPY_RunNewFunctionPassManager",
    "LLVMPY_RunNewModulePassManager",
    "LLVMPY_TargetMachineEmitToMemory",
)


@cache
def initialize() -> None:
    """Register every back end and assembly printer of llvmlite; later calls do nothing."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    # InstCombine would move a division whose quotient only a guarded load needs into the guard's branch. The loop
    # vectoriser of LLVM 22.1 then divides if the first lane passes the guard, and computes the address of the masked
    # load from the quotient either way.
    llvm.set_option("tensorkiln", "-instcombine-code-sinking=false")
    # llvmlite holds one lock during every call. LLVM itself may optimise and compile modules of different contexts at
    # the same time (LLVM Programmer's Manual, "Threads and LLVM").
    for call in _LONG_CALLS:
        getattr(ffi.lib, call)._lock = nullcontext()
