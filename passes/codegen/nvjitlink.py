"""NVIDIA's assembler as the library nvJitLink, inside this process.

It contains the same assembler as ptxas, needs no driver and starts no process or thread, so it works in a compile of
the service. Only the library of PyPI's nvidia-nvjitlink is used: its output depends on its version, which is then
known.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import Final

from tensorkiln.errors import DiagnosticError, UnsupportedGraphError

from .assembly import Assembly, assembly_of

DISTRIBUTION: Final = "nvidia-nvjitlink"
_LIBRARY: Final = Path("cu13", "lib", "libnvJitLink.so.13")
_TOLD_OF_ERRORS: Final = 2000

# nvJitLink.h: nvJitLinkResult and nvJitLinkInputType
_SUCCESS: Final = 0
_UNKNOWN_ARCHITECTURE: Final = (16, 17)
_PTX: Final = 2


def version() -> str | None:
    """The version of the installed library; None if there is none."""
    try:
        return distribution_version(DISTRIBUTION) if _path() is not None else None
    except PackageNotFoundError:
        return None


def assemble(ptx: str, arch: str) -> Assembly:
    """The PTX assembled for exactly `arch`; equal arguments and library versions give equal bytes.

    Raises UnsupportedGraphError if the library is not installed or does not know the architecture; DiagnosticError with
    its message if it rejects the PTX.
    """
    library = _load()
    with _link(library, arch) as handle:
        text = ptx.encode()
        status = library.nvJitLinkAddData(handle, _PTX, text, ctypes.c_size_t(len(text)), b"kernels.ptx")
        if status == _SUCCESS:
            status = library.nvJitLinkComplete(handle)
        if status != _SUCCESS:
            said = _text(library, handle, "ErrorLog").strip()[:_TOLD_OF_ERRORS] or f"status {status}"
            raise DiagnosticError(f"nvJitLink refused the PTX: {said}", details={"stage": "assemble"})
        return assembly_of(_bytes(library, handle, "LinkedCubin"), _text(library, handle, "InfoLog"))


@cache
def _load() -> ctypes.CDLL:
    path = _path()
    if path is None:
        raise UnsupportedGraphError(
            f"there is no assembler to make a cubin with: install {DISTRIBUTION}", pointers=["/options/cubin"]
        )
    return ctypes.CDLL(str(path))


def _path() -> Path | None:
    spec = importlib.util.find_spec("nvidia")
    roots = (spec.submodule_search_locations or ()) if spec is not None else ()
    return next((path for root in roots if (path := Path(root) / _LIBRARY).is_file()), None)


@contextmanager
def _link(library: ctypes.CDLL, arch: str) -> Generator[ctypes.c_void_p]:
    handle = ctypes.c_void_p()
    options = [f"-arch={arch}".encode(), b"-verbose"]
    array = (ctypes.c_char_p * len(options))(*options)
    status = library.nvJitLinkCreate(ctypes.byref(handle), ctypes.c_uint32(len(options)), array)
    try:
        if status in _UNKNOWN_ARCHITECTURE:
            raise UnsupportedGraphError(
                f"nvJitLink {version()} does not assemble for {arch}: use its PTX", pointers=["/target"]
            )
        if status != _SUCCESS:
            raise DiagnosticError(f"nvJitLink does not start: status {status}", details={"stage": "assemble"})
        yield handle
    finally:
        library.nvJitLinkDestroy(ctypes.byref(handle))


def _bytes(library: ctypes.CDLL, handle: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _must(getattr(library, f"nvJitLinkGet{what}Size"), handle, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    _must(getattr(library, f"nvJitLinkGet{what}"), handle, buffer)
    return buffer.raw


def _text(library: ctypes.CDLL, handle: ctypes.c_void_p, what: str) -> str:
    return _bytes(library, handle, what).rstrip(b"\0").decode(errors="replace")


def _must(function: Callable[..., int], *arguments: object) -> None:
    if (status := function(*arguments)) != _SUCCESS:
        raise DiagnosticError(f"nvJitLink failed with status {status}", details={"stage": "assemble"})
