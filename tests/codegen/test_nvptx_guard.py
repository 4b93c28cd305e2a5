"""What the NVPTX back end has no code for is named, and never reaches it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from passes.codegen import nvptx
from tensorkiln.errors import DiagnosticError
from tensorkiln.target import Target

AMPERE = Target.parse("cuda:sm_80")
HOPPER = Target.parse("cuda:sm_90")


def kernel(body: str, *declarations: str) -> str:
    """A kernel with the pointers %p and %q and the number %n."""
    return "\n".join(
        ["define ptx_kernel void @k(ptr %p, ptr %q, i64 %n) {", body, "  ret void", "}", *declarations],
    )


def through(kind: str, operation: str, result: str | None = None) -> str:
    """A body that loads %x and %y of a type, and stores %r."""
    return f"  %x = load {kind}, ptr %p\n  %y = load {kind}, ptr %q\n  {operation}\n  store {result or kind} %r, ptr %p"


def unary(name: str, kind: str) -> str:
    return kernel(through(kind, f"%r = call {kind} @{name}({kind} %x)"), f"declare {kind} @{name}({kind})")


FATAL = {
    "the intrinsic llvm.log.f32": unary("llvm.log.f32", "float"),
    "the intrinsic llvm.sin.f64": unary("llvm.sin.f64", "double"),
    "the intrinsic llvm.exp.bf16": unary("llvm.exp.bf16", "bfloat"),
    "the intrinsic llvm.pow.f32": kernel(
        through("float", "%r = call float @llvm.pow.f32(float %x, float %y)"),
        "declare float @llvm.pow.f32(float, float)",
    ),
    "the intrinsic llvm.fptosi.sat.i128.f32": kernel(
        through("float", "%r = call i128 @llvm.fptosi.sat.i128.f32(float %x)", "i128"),
        "declare i128 @llvm.fptosi.sat.i128.f32(float)",
    ),
    "the intrinsic llvm.nvvm.elect.sync": kernel(
        "  %e = call { i32, i1 } @llvm.nvvm.elect.sync(i32 -1)\n  %r = extractvalue { i32, i1 } %e, 0\n"
        "  store i32 %r, ptr %p",
        "declare { i32, i1 } @llvm.nvvm.elect.sync(i32)",
    ),
    "fptoui of i128": kernel(through("double", "%r = fptoui double %x to i128", "i128")),
    "sitofp of i65": kernel(through("i65", "%r = sitofp i65 %x to float", "float")),
    "the type i129": kernel(through("i129", "%r = add i129 %x, %y")),
    "the type fp128": kernel(through("fp128", "%r = fadd fp128 %x, %y")),
    "alloca of a number": kernel(
        "  %a = alloca i32, i64 %n\n  store volatile i32 1, ptr %a\n  %r = load volatile i32, ptr %a\n"
        "  store i32 %r, ptr %p"
    ),
    "atomicrmw of i128": kernel("  %x = load i128, ptr %q\n  %r = atomicrmw xchg ptr %p, i128 %x monotonic"),
    "load atomic of i128": kernel(
        "  %r = load atomic i128, ptr %q acquire, align 16\n  store i128 %r, ptr %p, align 16"
    ),
    "synchronization scope singlethread": kernel('  fence syncscope("singlethread") seq_cst\n  store i32 1, ptr %p'),
    "synchronization scope agent": kernel('  fence syncscope("agent") seq_cst\n  store i32 1, ptr %p'),
    "trunc of <4 x i8> to truth values": kernel(
        "  %x = load <4 x i8>, ptr %p\n  %t = trunc <4 x i8> %x to <4 x i1>\n  store <4 x i1> %t, ptr %q"
    ),
    "the global other, which is not plain data": kernel(
        "  %v = load volatile i32, ptr @other\n  store i32 %v, ptr %p",
        "@one = global i32 0",
        "@other = alias i32, ptr @one",
    ),
    "the kernel name 'a-b'": 'define ptx_kernel void @"a-b"(ptr %p) {\n  ret void\n}',
}
"""What ends the process, by what is said of it."""

WRONG = {
    "the intrinsic llvm.exp2.f32": unary("llvm.exp2.f32", "float"),
    "the instruction frem": kernel(through("float", "%r = frem float %x, %y")),
    "the external function expf": unary("expf", "float"),
    "the external function free": kernel("  call void @free(ptr %p)", "declare void @free(ptr)"),
    "a call of inline assembly or through a pointer": kernel("  %f = load ptr, ptr %p\n  call void %f(ptr %q)"),
    "inline assembly": kernel('  %r = call i32 asm "mov.u32 $0, 1;", "=q"()\n  store i32 %r, ptr %p'),
    "the instruction invoke": (
        "declare i32 @personality(...)\ndeclare void @g(ptr)\n"
        "define ptx_kernel void @k(ptr %p) personality ptr @personality {\n"
        "  invoke void @g(ptr %p) to label %fine unwind label %thrown\n"
        "fine:\n  ret void\nthrown:\n  %l = landingpad { ptr, i32 } cleanup\n  ret void\n}"
    ),
    "the initial value of table in shared memory": kernel(
        "  %a = getelementptr i32, ptr addrspace(3) @table, i64 %n\n  store volatile i32 1, ptr addrspace(3) %a\n"
        "  %v = load i32, ptr addrspace(3) @table\n  store i32 %v, ptr %p",
        "@table = internal addrspace(3) global [4 x i32] zeroinitializer",
    ),
    "the global elsewhere, which is defined nowhere": kernel(
        "  %v = load i32, ptr @elsewhere\n  store i32 %v, ptr %p", "@elsewhere = external global i32"
    ),
    "the global own, which is not plain data": kernel(
        "  %v = load volatile i32, ptr @own\n  store i32 %v, ptr %p", "@own = thread_local global i32 0"
    ),
    "address space 2": (
        "define ptx_kernel void @k(ptr addrspace(2) %p) {\n  store i32 1, ptr addrspace(2) %p\n  ret void\n}"
    ),
}
"""What has code that is wrong, or that no device can run."""

DIE = """
import sys
from passes.codegen import nvptx, nvptx_guard
from tensorkiln.target import Target
nvptx.only_selectable = lambda module, architecture: None
nvptx.emit(sys.stdin.read(), Target.parse("cuda:sm_80"))
"""


@pytest.mark.parametrize("named", [*FATAL, *WRONG])
def test_intrinsics_without_code_are_named(named: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        nvptx.emit((FATAL | WRONG)[named], AMPERE)
    assert named in caught.value.message
    assert "sm_80" in caught.value.message
    assert caught.value.details["stage"] == "codegen"


@pytest.mark.parametrize("named", FATAL)
def test_without_the_check_the_process_ends(named: str) -> None:
    done = subprocess.run([sys.executable, "-c", DIE], input=FATAL[named], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_every_problem_is_named_with_the_kernel_it_is_in() -> None:
    remainder = kernel(through("float", "%s = frem float %x, %y\n  %r = frem float %s, %y"))
    cosine = unary("llvm.cos.f32", "float").replace("@k(", "@other(")
    with pytest.raises(DiagnosticError) as caught:
        nvptx.emit(f"{remainder}\n{cosine}", HOPPER)
    assert caught.value.details["unsupported"] == ["the instruction frem (in k)", "the intrinsic llvm.cos.f32"]


@pytest.mark.parametrize(
    ("arch", "named"),
    [("sm_70", "llvm.nvvm.redux.sync.add, which needs sm_80"), ("sm_75", "needs sm_80"), ("sm_80", None)],
)
def test_an_intrinsic_of_later_devices_is_refused_before_them(arch: str, named: str | None) -> None:
    name = "llvm.nvvm.redux.sync.add"
    text = kernel(
        f"  %x = load i32, ptr %p\n  %r = call i32 @{name}(i32 %x, i32 -1)\n  store i32 %r, ptr %p",
        f"declare i32 @{name}(i32, i32)",
    )
    if named is None:
        assert "redux.sync.add" in nvptx.emit(text, Target.parse(f"cuda:{arch}"))
        return
    with pytest.raises(DiagnosticError, match=named):
        nvptx.emit(text, Target.parse(f"cuda:{arch}"))


def test_truth_values_from_pairs_of_words_are_refused_only_where_there_are_pair_registers() -> None:
    text = kernel("  %x = load <2 x i32>, ptr %p\n  %t = trunc <2 x i32> %x to <2 x i1>\n  store <2 x i1> %t, ptr %q")
    assert ".entry k(" in nvptx.emit(text, HOPPER)
    with pytest.raises(DiagnosticError, match="trunc of <2 x i32>"):
        nvptx.emit(text, Target.parse("cuda:sm_100"))


FINE = {
    "names and comments that look like types": """
        @i129 = internal constant [2 x i64] [i64 1, i64 2] ; fp128 i500
        define ptx_kernel void @fp128(ptr %i129) "token"="target(x) fp128" {
          %frem = getelementptr i64, ptr @i129, i64 1
          %vscale = load volatile i64, ptr %frem
          store i64 %vscale, ptr %i129
          ret void
        }""",
    "copies of a size that is not known": kernel(
        "  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %n, i1 false)",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    ),
    "wide integers": kernel(through("i128", "%r = udiv i128 %x, %y")),
    "whole vectors as integers": kernel(
        through("<16 x i32>", "%s = bitcast <16 x i32> %x to i512\n  %t = lshr i512 %s, 77", "i512").replace("%r", "%t")
    ),
    "a switch": kernel(
        "  switch i64 %n, label %x [\n    i64 0, label %y\n    i64 7, label %z\n  ]\n"
        "x:\n  store volatile i32 1, ptr %p\n  ret void\ny:\n  store volatile i64 2, ptr %p\n  ret void\nz:"
    ),
    "atomics": kernel(
        "  %r = atomicrmw fadd ptr %p, float 1.0 monotonic\n  fence syncscope(\"block\") acq_rel\n"
        "  %s = cmpxchg ptr %q, i32 0, i32 1 acq_rel monotonic"
    ),
    "an array of a thread": kernel(
        "  %a = alloca [8 x i32]\n  %c = getelementptr i32, ptr %a, i64 %n\n  store volatile i32 1, ptr %c\n"
        "  %r = load volatile i32, ptr %a\n  store i32 %r, ptr %p"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FINE)
@pytest.mark.parametrize("arch", ["sm_70", "sm_90", "sm_120"])
def test_intrinsics_with_code_pass(what: str, arch: str) -> None:
    assert ".entry" in nvptx.emit(FINE[what], Target.parse(f"cuda:{arch}"))
