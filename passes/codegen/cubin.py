"""PTX assembled for exactly one architecture, by whatever assembler of NVIDIA's there is."""

from __future__ import annotations

from collections.abc import Callable

from . import nvjitlink, ptxas
from .assembly import Assembly

Assembler = Callable[[str, str], Assembly]
"""PTX and the architecture to what is made of it."""


def assemble(ptx: str, arch: str) -> Assembly:
    """By the library when it is installed, since it works everywhere, else by the program.

    UnsupportedGraphError when there is neither, or it does not know the architecture; DiagnosticError when it refuses
    the PTX.
    """
    return nvjitlink.assemble(ptx, arch) if nvjitlink.version() is not None else ptxas.assemble(ptx, arch)
