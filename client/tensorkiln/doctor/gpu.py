"""Checks of NVIDIA's driver, and of assemblers for its GPUs."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ..errors import DeviceError
from .finding import Finding, fail, ok, warn

_DRIVER: Final = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_LINKER: Final = "nvidia-nvjitlink"
_BINDINGS: Final = "cuda-bindings"


def look() -> Iterator[Finding]:
    """Check the GPUs for programs, and the assemblers for a service on this machine."""
    yield _driver()
    try:
        yield ok("nvjitlink", f"{version(_LINKER)}: a service here makes cubins")
    except PackageNotFoundError:
        yield ok("nvjitlink", "not installed: a service here gives PTX, and no cubins")
    yield _assembler()


def _driver() -> Finding:
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        if Path("/dev/nvidiactl").exists():
            return fail("gpu", "there is an NVIDIA GPU and no driver library", f"make {_DRIVER} visible to Python")
        return ok("gpu", "no NVIDIA driver: programs for CUDA targets compile here and do not run")
    if find_spec("cuda") is None or find_spec("cuda.bindings") is None:
        advice = "run `pip install 'tensorkiln[cuda]'`: without it no program runs on a GPU"
        return warn("gpu", f"NVIDIA's driver is there and {_BINDINGS} is not", advice)
    from ..runtime.cuda.bindings import BindingsDriver

    try:
        device = BindingsDriver(0).properties
    except DeviceError as error:
        return warn("gpu", error.message, "no program runs on a GPU here; nvidia-smi may say more")
    major, minor = device.capability
    return ok("gpu", f"{device.name}, runs cuda:sm_{major}{minor} ({_BINDINGS} {version(_BINDINGS)})")


def _assembler() -> Finding:
    named = os.environ.get("KILN_PTXAS")
    if named and shutil.which(named) is None:
        return fail("ptxas", f"KILN_PTXAS is {named!r}, which is not a program", "unset it, or name one")
    found = named or shutil.which("ptxas")
    if found is None:
        return ok("ptxas", "not on the path; only tests need it")
    try:
        said = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return warn("ptxas", f"{found} does not start: {error}", "reinstall it, or take it off the path")
    return ok("ptxas", f"{found}: {said.strip().splitlines()[-1] if said.strip() else 'of no known version'}")
