"""PTX: what the back end makes of kernels as the schedules write them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from passes.codegen import nvptx
from tensorkiln.architectures import ARCHITECTURES
from tensorkiln.errors import DiagnosticError
from tensorkiln.target import Target
from tests.snippets import ROOT

HOPPER = Target.parse("cuda:sm_90")
SREG = "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
BARRIER = "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n"
SCALE = (
    """
define ptx_kernel void @scale(ptr noalias align 16 %x, ptr noalias align 16 %y, i64 %n) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = zext i32 %t to i64
  %inside = icmp slt i64 %i, %n
  br i1 %inside, label %body, label %exit
body:
  %from = getelementptr inbounds float, ptr %x, i64 %i
  %v = load float, ptr %from, align 4
  %w = fmul float %v, 2.0
  %to = getelementptr inbounds float, ptr %y, i64 %i
  store float %w, ptr %to, align 4
  br label %exit
exit:
  ret void
}
"""
    + SREG
)
VECTOR = (
    """
define ptx_kernel void @vector(ptr noalias readonly align 16 %x, ptr noalias align 16 %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = zext i32 %t to i64
  %from = getelementptr inbounds <4 x float>, ptr %x, i64 %i
  %v = load <4 x float>, ptr %from, align 16
  %w = fneg <4 x float> %v
  %to = getelementptr inbounds <4 x float>, ptr %y, i64 %i
  store <4 x float> %w, ptr %to, align 16
  ret void
}
"""
    + SREG
)
SHARED = """
@tile = internal addrspace(3) global [256 x float] undef, align 16
@dynamic = external addrspace(3) global [0 x i8], align 16
define ptx_kernel void @shared(ptr noalias %x, ptr noalias %y, i64 %n) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = zext i32 %t to i64
  %from = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %from
  %own = getelementptr float, ptr addrspace(3) @tile, i64 %i
  store float %v, ptr addrspace(3) %own
  %more = getelementptr float, ptr addrspace(3) @dynamic, i64 %i
  store float %v, ptr addrspace(3) %more
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %j = xor i64 %i, 5
  %other = getelementptr float, ptr addrspace(3) @tile, i64 %j
  %w = load float, ptr addrspace(3) %other
  %last = getelementptr float, ptr addrspace(3) @dynamic, i64 %j
  %u = load float, ptr addrspace(3) %last
  %s = fadd float %w, %u
  %to = getelementptr float, ptr %y, i64 %i
  store float %s, ptr %to
  ret void
}
""" + SREG + BARRIER  # fmt: skip
ARRAY = """
define ptx_kernel void @array(ptr noalias %x, ptr noalias %y, i64 %n) {
entry:
  %sums = alloca [8 x float]
  br label %clear
clear:
  %c = phi i64 [ 0, %entry ], [ %c1, %clear ]
  %cell = getelementptr float, ptr %sums, i64 %c
  store float 0.0, ptr %cell
  %c1 = add i64 %c, 1
  %clearing = icmp slt i64 %c1, 8
  br i1 %clearing, label %clear, label %steps
steps:
  %k = phi i64 [ 0, %clear ], [ %k1, %step ]
  br label %lanes
lanes:
  %l = phi i64 [ 0, %steps ], [ %l1, %lanes ]
  %sum = getelementptr float, ptr %sums, i64 %l
  %before = load float, ptr %sum
  %row = mul i64 %k, 8
  %at = add i64 %row, %l
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %after = fadd float %before, %v
  store float %after, ptr %sum
  %l1 = add i64 %l, 1
  %within = icmp slt i64 %l1, 8
  br i1 %within, label %lanes, label %step
step:
  %k1 = add i64 %k, 1
  %going = icmp slt i64 %k1, %n
  br i1 %going, label %steps, label %out
out:
  %o = phi i64 [ 0, %step ], [ %o1, %out ]
  %result = getelementptr float, ptr %sums, i64 %o
  %r = load float, ptr %result
  %to = getelementptr float, ptr %y, i64 %o
  store float %r, ptr %to
  %o1 = add i64 %o, 1
  %storing = icmp slt i64 %o1, 8
  br i1 %storing, label %out, label %exit
exit:
  ret void
}
"""
KERNELS = {"scale": SCALE, "vector": VECTOR, "shared": SHARED, "array": ARRAY}


def accesses(ptx: str) -> set[str]:
    """The loads and stores of a module, less those of the parameters."""
    return {word for word in re.findall(r"\b(?:ld|st)\.[\w.:]+", ptx) if not word.startswith("ld.param")}


def binary(operation: str, kind: str) -> str:
    """A kernel of one operation on two elements."""
    return f"""
    define ptx_kernel void @one(ptr %a, ptr %b, ptr %c) {{
      %x = load {kind}, ptr %a
      %y = load {kind}, ptr %b
      {operation}
      store {kind} %r, ptr %c
      ret void
    }}"""


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_llvm_knows_every_architecture_and_the_least_ptx_that_has_it(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvptx, "LEAST_PTX", 0)
    ptx = nvptx.emit(SCALE, Target.parse(f"cuda:{name}"))
    assert f"\n.target {name}\n" in ptx
    assert f"\n.version {ARCHITECTURES[name].ptx / 10:.1f}\n" in ptx
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("name", "version"), [("sm_70", "7.0"), ("sm_75", "7.0"), ("sm_90a", "8.0"), ("sm_120", "8.7")]
)
def test_the_text_is_of_the_least_ptx_from_cuda_11_on(name: str, version: str) -> None:
    assert f"\n.version {version}\n" in nvptx.emit(SCALE, Target.parse(f"cuda:{name}"))


@pytest.mark.parametrize("name", KERNELS)
def test_equal_input_gives_equal_text(name: str) -> None:
    assert nvptx.emit(KERNELS[name], HOPPER) == nvptx.emit(KERNELS[name], HOPPER)


def test_equal_input_gives_equal_text_in_another_process() -> None:
    code = "import sys; from tests.codegen.test_nvptx import *; sys.stdout.write(nvptx.emit(SHARED, HOPPER))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == nvptx.emit(SHARED, HOPPER)


def test_unaliased_inputs_are_loaded_through_the_read_only_cache() -> None:
    assert accesses(nvptx.emit(SCALE, HOPPER)) == {"ld.global.nc.b32", "st.global.b32"}
    assert accesses(nvptx.emit(SCALE.replace(" noalias", ""), HOPPER)) == {"ld.global.b32", "st.global.b32"}


def test_generic_pointers_become_accesses_of_global_memory() -> None:
    for text in KERNELS.values():
        assert not re.search(r"\b(?:ld|st)(?:\.volatile)?\.(?:b|u|s|f|v)\d", nvptx.emit(text, HOPPER))


def test_four_aligned_floats_are_moved_at_once() -> None:
    assert accesses(nvptx.emit(VECTOR, HOPPER)) == {"ld.global.nc.v4.b32", "st.global.v4.b32"}
    unaligned = VECTOR.replace("align 16", "align 4")
    assert accesses(nvptx.emit(unaligned, HOPPER)) == {"ld.global.nc.b32", "st.global.b32"}


def test_globals_of_a_block_are_in_shared_memory() -> None:
    ptx = nvptx.emit(SHARED, HOPPER)
    assert {"ld.shared.b32", "st.shared.b32"} < accesses(ptx)
    assert ".shared .align 16 .b8 tile[1024];" in ptx
    assert ".extern .shared .align 16 .b8 dynamic[];" in ptx
    assert "bar.sync \t0;" in ptx or "barrier.sync" in ptx


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_uses_no_local_memory(name: str) -> None:
    assert ".local" not in nvptx.emit(KERNELS[name], HOPPER)


@pytest.mark.parametrize("kind", ["half", "bfloat", "float", "double"])
def test_a_product_and_a_sum_are_rounded_twice_unless_they_may_be_contracted(kind: str) -> None:
    plain = binary(f"%p = fmul {kind} %x, %y\n %r = fadd {kind} %p, %x", kind)
    ptx = nvptx.emit(plain, HOPPER)
    assert re.search(r"\bmul\.rn\.", ptx)
    assert re.search(r"\badd\.rn\.", ptx)
    assert "fma." not in ptx
    contracted = plain.replace("fmul", "fmul contract").replace("fadd", "fadd contract")
    assert "fma.rn." in nvptx.emit(contracted, HOPPER)


@pytest.mark.parametrize("kind", ["float", "double"])
def test_division_and_square_root_are_rounded_correctly(kind: str) -> None:
    bits = "f32" if kind == "float" else "f64"
    text = binary(f"%q = fdiv {kind} %x, %y\n %r = call {kind} @llvm.sqrt.{bits}({kind} %q)", kind)
    ptx = nvptx.emit(f"{text}\ndeclare {kind} @llvm.sqrt.{bits}({kind})", HOPPER)
    assert f"div.rn.{bits}" in ptx
    assert f"sqrt.rn.{bits}" in ptx
    assert "approx" not in ptx
    assert ".ftz" not in ptx


@pytest.mark.parametrize("arch", ["sm_70", "sm_90"])
def test_a_maximum_propagates_nan(arch: str) -> None:
    text = binary("%r = call float @llvm.maximum.f32(float %x, float %y)", "float")
    ptx = nvptx.emit(f"{text}\ndeclare float @llvm.maximum.f32(float, float)", Target.parse(f"cuda:{arch}"))
    assert ("max.NaN.f32" in ptx) == (arch == "sm_90")
    assert "0f7FC00000" in ptx or arch == "sm_90"


def test_the_threads_of_a_block_are_stated() -> None:
    required = SCALE.replace("%n) {", '%n) "nvvm.reqntid"="128,1,1" {')
    assert ".reqntid 128, 1, 1" in nvptx.emit(required, HOPPER)


def test_a_function_that_is_no_kernel_is_inlined() -> None:
    text = """
    define void @store(ptr %p, i64 %i) {
      %at = getelementptr i64, ptr %p, i64 %i
      store i64 %i, ptr %at
      ret void
    }
    define ptx_kernel void @one(ptr %p) {
      call void @store(ptr %p, i64 1)
      call void @store(ptr %p, i64 3)
      ret void
    }
    define ptx_kernel void @two(ptr %p) {
      call void @store(ptr %p, i64 2)
      ret void
    }"""
    ptx = nvptx.emit(text, HOPPER)
    assert re.findall(r"\.entry (\w+)\(", ptx) == ["one", "two"]
    assert ".func" not in ptx
    assert "call" not in ptx
    assert "define void @store" not in nvptx.optimised_ir(text, HOPPER)


def test_a_function_that_cannot_be_inlined_is_refused() -> None:
    text = """
    define i64 @power(i64 %n) {
      %done = icmp eq i64 %n, 0
      br i1 %done, label %out, label %more
    out:
      ret i64 1
    more:
      %m = udiv i64 %n, 3
      %p = call i64 @power(i64 %m)
      %q = call i64 @power(i64 %p)
      %r = mul i64 %q, 7
      ret i64 %r
    }
    define ptx_kernel void @one(ptr %p, i64 %n) {
      %r = call i64 @power(i64 %n)
      store i64 %r, ptr %p
      ret void
    }"""
    with pytest.raises(DiagnosticError, match="function power, which is not a kernel"):
        nvptx.emit(text, HOPPER)


@pytest.mark.parametrize("text", ["define ptx_kernel void @k( {", "define ptx_kernel i32 @k() { ret void }"])
def test_text_that_llvm_does_not_read_is_a_diagnostic(text: str) -> None:
    with pytest.raises(DiagnosticError, match="LLVM refused the module"):
        nvptx.emit(text, HOPPER)


@pytest.mark.parametrize("target", ["cpu:x86-64-v3", "rocm:gfx942"])
def test_a_target_without_ptx_is_refused(target: str) -> None:
    with pytest.raises(DiagnosticError, match="no PTX code generator"):
        nvptx.emit(SCALE, Target.parse(target))


@pytest.mark.parametrize(
    "declaration",
    [
        ".extern .func (.param .b32 r) vprintf (.param .b64 f)",
        ".extern .global .align 4 .b32 counter",
        ".extern\t.const .b8 table[]",
    ],
)
def test_ptx_that_leaves_more_than_shared_memory_to_its_loader_is_refused(declaration: str) -> None:
    ptx = nvptx.emit(SHARED, Target.parse("cuda:sm_90"))
    nvptx.only_kernels(ptx + ".extern .shared .align 16 .b8 dynamic[];\n")
    with pytest.raises(DiagnosticError, match="the PTX leaves to its loader") as caught:
        nvptx.only_kernels(f"{ptx}{declaration};\n{declaration};\n")
    assert caught.value.details == {"stage": "codegen", "declarations": [declaration]}
