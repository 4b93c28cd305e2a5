"""The back end has code for every intrinsic that is let through, and an assembler takes it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import cache

import pytest

from passes.codegen import cubin
from passes.codegen.nvptx_intrinsics import AMPERE, TURING, VOLTA, least_capability
from tensorkiln.architectures import ARCHITECTURES, Capability
from tests.codegen.assemblers import needs_assembler
from tests.codegen.nvptx_calls import Call, device, generic, module

EMIT = """
import sys
from passes.codegen import nvptx
from tensorkiln.target import Target
sys.stdout.write(nvptx.emit(sys.stdin.read(), Target.parse(sys.argv[1])))
"""
ARCHES = ("sm_70", "sm_75", "sm_80", "sm_90", "sm_100", "sm_120")


def emitted(calls: list[Call], arch: str) -> str:
    """The PTX, made in a process of its own, which an intrinsic without code would end."""
    done = subprocess.run(
        [sys.executable, "-c", EMIT, f"cuda:{arch}"], input=module(calls), capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr == ""
    return done.stdout


@cache
def emitted_for_device(arch: str) -> str:
    return emitted(device_calls(arch), arch)


def of_every(arches: Sequence[str]) -> pytest.MarkDecorator:
    """Parameters of tests; what is made for an architecture is made once, so its tests are done by one process."""
    grouped = [pytest.param(arch, marks=pytest.mark.xdist_group(f"intrinsics {arch}")) for arch in arches]
    return pytest.mark.parametrize("arch", grouped)


def device_calls(arch: str) -> list[Call]:
    capability = ARCHITECTURES[arch].capability
    return [call for since in (VOLTA, TURING, AMPERE) if since <= capability for call in device(since)]


@pytest.mark.parametrize("arch", ["sm_70", "sm_90", "sm_120"])
def test_every_intrinsic_of_llvm_that_is_let_through_has_code(arch: str) -> None:
    calls = list(generic())
    assert [call.name for call in calls if least_capability(call.name) != VOLTA] == []
    ptx = emitted(calls, arch)
    assert ".extern .func" not in ptx
    assert ptx.count(".entry") == len(calls)
    assert ".approx" not in ptx


@of_every(ARCHES)
def test_every_intrinsic_of_the_device_that_is_let_through_has_code(arch: str) -> None:
    calls, ptx = device_calls(arch), emitted_for_device(arch)
    assert ".extern .func" not in ptx
    assert ptx.count(".entry") == len(calls)


@needs_assembler
@of_every(["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_an_assembler_takes_the_code_of_every_intrinsic_of_the_device(arch: str) -> None:
    assert len(cubin.assemble(emitted_for_device(arch), arch).usage) == len(device_calls(arch))


@pytest.mark.parametrize("since", [VOLTA, TURING, AMPERE])
def test_the_first_capability_that_has_an_intrinsic_is_known(since: Capability) -> None:
    assert {least_capability(call.name) for call in device(since)} == {since}


@pytest.mark.parametrize(
    "name",
    ["llvm.exp2.f32", "llvm.log2.f64", "llvm.sin.f32", "llvm.pow.f64", "llvm.powi.f32.i32", "llvm.fptosi.sat.i128.f64",
     "llvm.fma.f128", "llvm.sqrt.v4f80", "llvm.acosh.f32", "llvm.nvvm.no.such", "llvm.fmaxf32", "expf", "fma.f32",
     "llvm.umin.i129", "llvm.matrix.multiply.v4f32.v4f32.v4f32", "llvm.bswap.v4i32", "llvm.umin.v4i32.extra",
     "llvm.experimental.constrained.fadd.f32", "llvm.va_start.p0", "llvm.stacksave.p0", "llvm.fma.v4f32x"],
)  # fmt: skip
def test_another_name_is_not_let_through(name: str) -> None:
    assert least_capability(name) is None
