"""Cubins: what the assemblers make of PTX, what they say of it, and how they refuse it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from passes.codegen import cubin, nvjitlink, nvptx, ptxas
from passes.codegen.assembly import assembly_of
from service.http.answers import described
from service.sandbox.control import Ready
from service.settings import Settings
from tensorkiln.architectures import ARCHITECTURES
from tensorkiln.errors import DeadlineExceededError, DiagnosticError, UnsupportedGraphError
from tensorkiln.target import Target
from tests.codegen.assemblers import needs_nvjitlink, needs_ptxas
from tests.codegen.test_nvptx import SCALE, SHARED

KERNELS = SCALE + SHARED.replace("declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n", "")
ARRAY = """
define ptx_kernel void @kept(ptr %p, i64 %n) {
  %a = alloca [40 x i32]
  %c = getelementptr i32, ptr %a, i64 %n
  store volatile i32 1, ptr %c
  %r = load volatile i32, ptr %a
  store i32 %r, ptr %p
  ret void
}
"""
ASSEMBLERS = [
    pytest.param(ptxas.assemble, marks=needs_ptxas, id="ptxas"),
    pytest.param(nvjitlink.assemble, marks=needs_nvjitlink, id="nvjitlink"),
]
each = pytest.mark.parametrize("assemble", ASSEMBLERS)

CONFINED = """
import sys
from service.sandbox.confine import renounce_privileges
from service.sandbox.syscalls import forbid_processes
from passes.codegen import {module}
renounce_privileges()
forbid_processes()
sys.stdout.write(str(len({module}.assemble(sys.stdin.read(), "sm_90").usage)))
"""


def ptx(llvm_ir: str, arch: str = "sm_90") -> str:
    return nvptx.emit(llvm_ir, Target.parse(f"cuda:{arch}"))


@each
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_90a", "sm_100f", "sm_120"])
def test_a_cubin_is_made_for_the_architecture(assemble: cubin.Assembler, arch: str) -> None:
    made = assemble(ptx(SCALE, arch), arch)
    assert made.cubin[:4] == b"\x7fELF"
    assert int.from_bytes(made.cubin[18:20], "little") == 190  # EM_CUDA
    assert list(made.usage) == ["scale"]


@each
def test_equal_input_gives_equal_bytes(assemble: cubin.Assembler) -> None:
    assert assemble(ptx(KERNELS), "sm_90") == assemble(ptx(KERNELS), "sm_90")


@each
def test_registers_and_stack_of_a_kernel_are_counted(assemble: cubin.Assembler) -> None:
    usage = assemble(ptx(KERNELS + ARRAY), "sm_90").usage
    assert usage.keys() == {"scale", "shared", "kept"}
    assert [usage[name].static_shared_bytes for name in ("scale", "shared", "kept")] == [0, 1024, 0]
    assert [usage[name].stack_bytes for name in ("scale", "shared", "kept")] == [0, 0, 160]
    for one in usage.values():
        assert 4 <= one.registers <= 255
        assert one.spill_store_bytes == one.spill_load_bytes == 0
        assert one.code_bytes % 128 == 0
        assert one.code_bytes > 0


@each
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("floats", [4, 8, 256])
def test_shared_memory_is_what_the_kernel_declares(assemble: cubin.Assembler, arch: str, floats: int) -> None:
    usage = assemble(ptx(KERNELS.replace("[256 x float]", f"[{floats} x float]"), arch), arch).usage
    assert [usage[name].static_shared_bytes for name in ("scale", "shared")] == [0, 4 * floats]


@each
def test_the_record_of_a_program_says_the_same(assemble: cubin.Assembler) -> None:
    one = assemble(ptx(KERNELS), "sm_90").usage["shared"]
    resources = one.resources
    assert (resources.registers, resources.shared_memory_bytes) == (one.registers, 1024)
    assert (resources.spill_bytes, resources.code_bytes) == (0, one.code_bytes)


@each
def test_too_much_shared_memory_is_refused_with_what_the_assembler_says(assemble: cubin.Assembler) -> None:
    text = ptx(SHARED.replace("[256 x float]", "[12289 x float]"))
    with pytest.raises(DiagnosticError, match=r"shared.*uses too much shared data") as caught:
        assemble(text, "sm_90")
    assert caught.value.details["stage"] == "assemble"


@each
def test_text_that_is_no_ptx_is_refused(assemble: cubin.Assembler) -> None:
    with pytest.raises(DiagnosticError, match="Not a name of any known instruction: 'frobnicate'"):
        assemble(ptx(SCALE).replace("\tret;", "\tfrobnicate;"), "sm_90")
    with pytest.raises(DiagnosticError, match="refused the PTX"):
        assemble("", "sm_90")


@each
def test_code_for_a_later_architecture_is_refused(assemble: cubin.Assembler) -> None:
    with pytest.raises(DiagnosticError, match=r"\.target is higher"):
        assemble(ptx(SCALE, "sm_90"), "sm_80")


@each
def test_an_architecture_that_the_assembler_does_not_know_is_refused_by_name(assemble: cubin.Assembler) -> None:
    with pytest.raises(UnsupportedGraphError, match=r"(?:ptxas|nvJitLink) \d+\.\d+\.\d+ does not assemble for sm_999"):
        assemble(ptx(SCALE), "sm_999")


@needs_ptxas
@needs_nvjitlink
def test_both_assemblers_make_code_that_takes_the_same() -> None:
    text = ptx(KERNELS)
    one, other = ptxas.assemble(text, "sm_90").usage, nvjitlink.assemble(text, "sm_90").usage
    assert {name: usage.static_shared_bytes for name, usage in one.items()} == {
        name: usage.static_shared_bytes for name, usage in other.items()
    }
    assert one.keys() == other.keys()


@each
def test_functions_of_the_assembler_are_not_taken_for_kernels(assemble: cubin.Assembler) -> None:
    text = SCALE.replace("%w = fmul float %v, 2.0", "%w = fdiv float 2.0, %v")
    assert list(assemble(ptx(text), "sm_90").usage) == ["scale"]


@needs_ptxas
def test_an_assembler_that_takes_too_long_is_ended() -> None:
    with pytest.raises(DeadlineExceededError, match="did not assemble the PTX within"):
        ptxas.assemble(ptx(KERNELS), "sm_90", timeout_s=0.0001)


@needs_ptxas
def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ptxas.assemble(ptx(SCALE), "sm_90")
    with pytest.raises(DiagnosticError):
        ptxas.assemble("", "sm_90")
    assert list(tmp_path.iterdir()) == []


def confined(module: str, text: str) -> subprocess.CompletedProcess[str]:
    """The assembler in a process that may start no other, as a compile of the service."""
    code = CONFINED.format(module=module)
    return subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, timeout=60)


@needs_nvjitlink
@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
def test_the_library_works_where_no_process_may_be_started() -> None:
    done = confined("nvjitlink", ptx(KERNELS))
    assert (done.returncode, done.stdout) == (0, "2"), done.stderr


@needs_ptxas
@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
def test_the_program_says_that_it_may_not_be_started() -> None:
    done = confined("ptxas", ptx(KERNELS))
    assert done.returncode == 1
    assert "UnsupportedGraphError: ptxas cannot be started" in done.stderr


def program(path: Path, prints: str = "Cuda compilation tools, release 9.9, V9.9.1") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No ptxas anywhere."""
    for name in ("KILN_PTXAS", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)


@pytest.mark.usefixtures("bare")
def test_the_program_is_looked_for_in_the_order_that_is_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ptxas.find() is None
    for folder, wheel in (("site-12", "cuda_nvcc"), ("site-13", "cu13")):
        in_wheel = program(tmp_path / folder / "nvidia" / wheel / "bin" / "ptxas")
        monkeypatch.setattr(sys, "path", [str(tmp_path / folder)])
        assert ptxas.find() == in_wheel
    for name in ("CUDA_PATH", "CUDA_HOME"):
        in_toolkit = program(tmp_path / name / "bin" / "ptxas")
        monkeypatch.setenv(name, str(tmp_path / name))
        assert ptxas.find() == in_toolkit
    on_path = program(tmp_path / "path" / "ptxas")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert ptxas.find() == on_path
    named = program(tmp_path / "named")
    monkeypatch.setenv("KILN_PTXAS", str(named))
    assert ptxas.find() == named
    monkeypatch.setenv("KILN_PTXAS", str(tmp_path / "absent"))
    with pytest.raises(UnsupportedGraphError, match="is not a program"):
        ptxas.find()


def test_the_version_is_read(tmp_path: Path) -> None:
    assert ptxas.version(program(tmp_path / "ptxas")) == "9.9.1"
    with pytest.raises(DiagnosticError, match="is not ptxas"):
        ptxas.version(program(tmp_path / "other", "hello"))


@pytest.mark.usefixtures("bare")
def test_without_an_assembler_a_cubin_is_refused() -> None:
    assert nvjitlink.version() is None
    with pytest.raises(UnsupportedGraphError, match="there is no ptxas") as caught:
        cubin.assemble(ptx(SCALE), "sm_90")
    assert caught.value.pointers == ("/options/cubin",)


@needs_nvjitlink
def test_the_library_comes_before_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILN_PTXAS", os.fspath(tmp_path))
    assert list(cubin.assemble(ptx(SCALE), "sm_90").usage) == ["scale"]


def test_the_service_states_every_architecture_and_the_version_of_the_library() -> None:
    capabilities = described(Settings(), Ready(baseline_mib=1, mechanisms=()))
    assert capabilities.ptxas == nvjitlink.version()
    assert {f"cuda:{name}" for name in ARCHITECTURES} < set(capabilities.targets)


@needs_ptxas
def test_a_report_that_does_not_fit_the_cubin_is_refused() -> None:
    made = ptxas.assemble(ptx(SCALE), "sm_90").cubin
    function = "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nUsed 8 registers"
    for log, message in (
        ("", "reports on no kernel"),
        ("Compiling entry function 'scale' for 'sm_90'\nnothing more", "report on scale is not understood"),
        (f"Compiling entry function 'other' for 'sm_90'\n{function}", "report on other is not understood"),
    ):
        with pytest.raises(DiagnosticError, match=message):
            assembly_of(made, log)
    with pytest.raises(DiagnosticError, match="not 64-bit little-endian ELF"):
        assembly_of(b"\x7fELF\x01\x01" + bytes(64), "")
