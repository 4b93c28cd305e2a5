"""LLVM's back ends, registered once per process, and the options of its optimiser."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm


@cache
def initialize() -> None:
    """Register every back end and assembly printer of llvmlite; later calls do nothing."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    # InstCombine would move a division whose quotient only a guarded load needs into the guard's branch. The loop
    # vectoriser of LLVM 22.1 then divides if the first lane passes the guard, and computes the address of the masked
    # load from the quotient either way.
    llvm.set_option("tensorkiln", "-instcombine-code-sinking=false")
