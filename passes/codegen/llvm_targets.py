"""LLVM's back ends, registered once a process."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm


@cache
def initialize() -> None:
    """Register every back end and assembly printer that llvmlite was built with; later calls do nothing."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
