"""Disassembly of NVIDIA GPU code by NVIDIA's `nvdisasm`, if it is installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Final

from ..spec import CompiledProgram

SASS: Final = "sass"
"""The name of the text in a report."""
_PACKAGE: Final = "nvidia-cuda-nvdisasm"
_TOOL: Final = "nvdisasm"
_TIME_S: Final = 60


def disassembler() -> str | None:
    """The path of `nvdisasm`: from the package, else from the PATH; None when there is none."""
    try:
        installed = files(_PACKAGE) or ()
    except PackageNotFoundError:
        installed = ()
    found = next((Path(str(each.locate())) for each in installed if Path(each.name).stem == _TOOL), None)
    return str(found) if found is not None and found.is_file() else shutil.which(_TOOL)


def sass(program: CompiledProgram, artifacts: Mapping[str, bytes]) -> dict[str, str]:
    """The disassembled cubins of a program under the name `SASS`; empty without cubins or without a disassembler.

    If the disassembler fails, the text states that.
    """
    digests = sorted({kernel.binary for kernel in program.kernels if kernel.binary} & artifacts.keys())
    tool = disassembler() if digests else None
    if tool is None:
        return {}
    return {SASS: "\n".join(_disassembled(tool, artifacts[digest]) for digest in digests)}


def _disassembled(tool: str, cubin: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "code.cubin")
        path.write_bytes(cubin)
        try:
            done = subprocess.run([tool, "-c", str(path)], capture_output=True, text=True, timeout=_TIME_S, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            return f"// {_TOOL} failed: {type(error).__name__}"
    return done.stdout
