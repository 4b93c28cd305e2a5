"""Checks of Python and of the packages that tensorkiln requires."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from typing import Final

from packaging.requirements import Requirement

from ..compiler_build import SERVER as PACKAGE
from .finding import Finding, fail, ok, warn

DISTRIBUTION: Final = "tensorkiln"
SERVER: Final = "tensorkiln-server"
_LEAST_PYTHON: Final = (3, 11)
_LOSSES: Final = {"cpu": "programs for this CPU do not run", "onnx": "ONNX models are not read"}
"""The consequence of each missing extra. The extra for GPUs is checked with the GPU."""
_TOLD: Final = (
    *("numpy", "ml_dtypes", "pydantic", "msgspec", "httpx2", "cryptography", "llvmlite", "cuda-bindings", "onnx"),
    *("torch-mlir", "fastapi", "uvicorn", "obstore"),
)


def look() -> Iterator[Finding]:
    """Check Python, the SDK, its requirements and extras, and an installed server."""
    written = platform.python_version()
    if sys.version_info[:2] < _LEAST_PYTHON:
        yield fail("python", written, f"use Python {'.'.join(map(str, _LEAST_PYTHON))} or newer")
    else:
        yield ok("python", f"{written} ({platform.python_implementation()}, {platform.machine()})")
    versions = ((name, _version(name)) for name in _TOLD)
    yield ok("packages", ", ".join(f"{name} {found}" for name, found in versions if found is not None))
    if _version(DISTRIBUTION) is None:
        advice = f"nothing, or run `pip install {DISTRIBUTION}`"
        yield warn(DISTRIBUTION, "runs from a folder without an installation: its requirements are not checked", advice)
    else:
        yield from _met(DISTRIBUTION)
        for extra, loss in _LOSSES.items():
            yield from _met(DISTRIBUTION, extra, loss)
    if _version(SERVER) is not None:
        yield from _met(SERVER)
    elif find_spec(PACKAGE) is None:
        yield ok(SERVER, "not installed: use a service by its URL")


def _met(name: str, extra: str = "", loss: str = "") -> Iterator[Finding]:
    """A finding for each unmet requirement, or one if all are met. Those of an extra are only warnings."""
    part = f"{name}[{extra}]" if extra else name
    unmet = list(_unmet(name, extra))
    if not unmet:
        yield ok(part, f"{_version(name)}, with all requirements")
    for requirement in unmet:
        found = f"needs {requirement.name}{requirement.specifier}, and has {_version(requirement.name) or 'none'}"
        install = f"run `pip install '{part}'`"
        yield warn(part, found, f"{install}: without it {loss}") if extra else fail(part, found, install)


def _unmet(name: str, extra: str) -> Iterator[Requirement]:
    for text in requires(name) or ():
        requirement = Requirement(text)
        marker, installed = requirement.marker, _version(requirement.name)
        is_always = marker is None or marker.evaluate({"extra": ""})
        if is_always == bool(extra) or not (marker is None or marker.evaluate({"extra": extra})):
            continue
        if installed is None or not requirement.specifier.contains(installed, prereleases=True):
            yield requirement


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
