"""NVIDIA's assembler ptxas, as a separate program.

The process must be allowed to start programs, unlike a compile of the service, which uses `nvjitlink`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from tensorkiln.errors import DeadlineExceededError, DiagnosticError, UnsupportedGraphError

from .assembly import Assembly, assembly_of

TIMEOUT_S: Final = 60.0
_TOLD_OF_ERRORS: Final = 2000
_VERSION: Final = re.compile(r"\bV(\d+\.\d+\.\d+)")
_UNKNOWN_ARCHITECTURE: Final = re.compile(r"Value '[^']+' is not defined for option 'gpu-name'")
_WHEELS: Final = ("cu13", "cuda_nvcc")
"""Folders of PyPI's nvidia-cuda-nvcc and nvidia-cuda-nvcc-cu12 with `bin/ptxas`, in the package `nvidia`."""


def find() -> Path | None:
    """The ptxas to use: that of KILN_PTXAS, of PATH, of CUDA_HOME or CUDA_PATH, or of an installed wheel.

    None if there is none. Raises UnsupportedGraphError if KILN_PTXAS names no program.
    """
    named = os.environ.get("KILN_PTXAS")
    if named:
        if shutil.which(named) is None:
            raise UnsupportedGraphError(f"KILN_PTXAS is {named!r}, which is not a program", pointers=["/options/cubin"])
        return Path(named)
    on_path = shutil.which("ptxas")
    if on_path is not None:
        return Path(on_path)
    homes = [Path(home) for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name))]
    found = (shutil.which("ptxas", path=folder / "bin") for folder in (*homes, *_wheel_folders()))
    return next((Path(path) for path in found if path is not None), None)


def _wheel_folders() -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    roots = (spec.submodule_search_locations or ()) if spec is not None else ()
    return [Path(root) / wheel for root in roots for wheel in _WHEELS]


@cache
def version(program: Path) -> str:
    """The version of a ptxas, such as 13.0.88. Raises DiagnosticError if it cannot be read."""
    said = subprocess.run(
        [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    found = _VERSION.search(said.stdout)
    if said.returncode != 0 or found is None:
        raise DiagnosticError(f"{program} is not ptxas: {said.stderr[:_TOLD_OF_ERRORS]}", details={"stage": "assemble"})
    return found[1]


def assemble(ptx: str, arch: str, *, timeout_s: float = TIMEOUT_S) -> Assembly:
    """The PTX assembled for exactly `arch`; equal arguments and ptxas versions give equal bytes.

    Raises UnsupportedGraphError if there is no ptxas, if it cannot be started, or if it does not know the architecture;
    DiagnosticError with its message if it rejects the PTX; DeadlineExceededError if it takes longer than `timeout_s`.
    """
    program = find()
    if program is None:
        raise UnsupportedGraphError(
            "there is no ptxas to assemble a cubin with: install one, or set KILN_PTXAS", pointers=["/options/cubin"]
        )
    try:
        temporary = tempfile.TemporaryDirectory(prefix="kiln-ptxas-")
    except PermissionError as error:
        # A confined process may make no directory.
        raise _not_started(error) from error
    with temporary as folder:
        source, result = Path(folder, "kernels.ptx"), Path(folder, "kernels.cubin")
        source.write_text(ptx, "utf-8")
        # The cubin repeats the command line, so names must not differ from run to run.
        command = [str(program.absolute()), "-arch", arch, "-v", "-o", result.name, source.name]
        log = _run(command, folder, arch, timeout_s)
        return assembly_of(result.read_bytes(), log)


def _not_started(error: OSError) -> UnsupportedGraphError:
    return UnsupportedGraphError(f"ptxas cannot be started: {error}", pointers=["/options/cubin"])


def _run(command: list[str], folder: str, arch: str, timeout_s: float) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={"PATH": os.defpath, "TMPDIR": folder},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DeadlineExceededError(
            f"ptxas did not assemble the PTX within {timeout_s:g} s; compile without the option cubin",
            details={"stage": "assemble"},
        ) from error
    except OSError as error:
        raise _not_started(error) from error
    if _UNKNOWN_ARCHITECTURE.search(done.stderr):
        raise UnsupportedGraphError(
            f"ptxas {version(Path(command[0]))} does not assemble for {arch}: use its PTX", pointers=["/target"]
        )
    if done.returncode != 0:
        said = done.stderr.strip()[:_TOLD_OF_ERRORS] or f"status {done.returncode}"
        raise DiagnosticError(f"ptxas refused the PTX: {said}", details={"stage": "assemble"})
    return done.stderr
