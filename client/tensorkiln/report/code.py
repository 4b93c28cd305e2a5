"""The code of a program, where that is text: PTX."""

from __future__ import annotations

from collections.abc import Mapping

from ..spec import CompiledProgram
from .page import PTX


def code_of(program: CompiledProgram, artifacts: Mapping[str, bytes]) -> dict[str, str]:
    """The PTX of a program's kernels; nothing where their code is of another form, or is not there."""
    if program.target.kind != "cuda":
        return {}
    digests = sorted({kernel.artifact for kernel in program.kernels if kernel.artifact} & artifacts.keys())
    texts = [artifacts[digest].rstrip(b"\0").decode("utf-8", "replace") for digest in digests]
    return {PTX: "\n".join(texts)} if texts else {}
