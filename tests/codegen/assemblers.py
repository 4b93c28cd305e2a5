"""Tests that need an assembler of NVIDIA's: skipped where there is none, unless it is required."""

from __future__ import annotations

import os

import pytest

from passes.codegen import nvjitlink, ptxas


def is_required(name: str) -> bool:
    """Whether a test that needs the assembler `name` must fail rather than be skipped without it."""
    return os.environ.get(f"KILN_REQUIRE_{name}") == "1"


needs_ptxas = pytest.mark.skipif(
    ptxas.find() is None and not is_required("PTXAS"),
    reason="there is no ptxas: install the extra ptxas, or set KILN_PTXAS",
)
needs_nvjitlink = pytest.mark.skipif(
    nvjitlink.version() is None and not is_required("NVJITLINK"),
    reason="nvidia-nvjitlink is not installed: install the extra cubin",
)
needs_assembler = pytest.mark.skipif(
    ptxas.find() is None and nvjitlink.version() is None and not (is_required("PTXAS") or is_required("NVJITLINK")),
    reason="there is neither nvidia-nvjitlink nor ptxas: install the extra cubin",
)
