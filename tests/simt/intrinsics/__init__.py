"""What stands on the host for each `llvm.nvvm.*` intrinsic: a definition in LLVM IR, by the intrinsic's name."""

from __future__ import annotations

from .arithmetic import ARITHMETIC
from .barriers import BARRIERS
from .registers import REGISTERS
from .stub import Stub
from .warps import WARPS

STUBS: dict[str, Stub] = {stub.intrinsic: stub for stub in (*REGISTERS, *BARRIERS, *WARPS, *ARITHMETIC)}
"""By the name after `llvm.nvvm.`."""

__all__ = ["STUBS", "Stub"]
