"""The instruction set extensions of this processor that this process may use."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Mapping
from functools import cache
from typing import Final

TILES: Final = "amx-"
"""What LLVM's names of the extensions with tile registers begin with."""
_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18
"""Linux's number of arch_prctl(2) on x86-64, ARCH_REQ_XCOMP_PERM and XFEATURE_XTILE_DATA: <asm/prctl.h> and
Documentation/arch/x86/xstate.rst."""


def usable_features(reported: Mapping[str, bool]) -> Mapping[str, bool]:
    """LLVM's report of this processor, without tile registers if the operating system refuses them to this process.

    Linux saves tile registers only for processes that have asked for them. All threads of this process, and processes
    that it forks later, share the grant.
    """
    has_tiles = any(is_there for name, is_there in reported.items() if name.startswith(TILES))
    if not has_tiles or _may_use_tiles():
        return reported
    return {name: is_there and not name.startswith(TILES) for name, is_there in reported.items()}


@cache
def _may_use_tiles() -> bool:
    """Ask the operating system for tile registers; whether they are granted."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST, _TILE_DATA) == 0
