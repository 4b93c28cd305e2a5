"""Assemble PTX for exactly one architecture, with whichever NVIDIA assembler is installed."""

from __future__ import annotations

from collections.abc import Callable

from . import nvjitlink, ptxas
from .assembly import Assembly

Assembler = Callable[[str, str], Assembly]
"""Assembles PTX for an architecture."""


def assemble(ptx: str, arch: str) -> Assembly:
    """Assemble with the library if it is installed, since it works everywhere, else with the program.

    Raises UnsupportedGraphError if there is neither, or it does not know the architecture; DiagnosticError if it
    rejects the PTX.
    """
    return nvjitlink.assemble(ptx, arch) if nvjitlink.version() is not None else ptxas.assemble(ptx, arch)
