"""Objects for every CPU target: loadable, reproducible, refused with a diagnostic when they cannot be."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest

from passes.codegen import object_code
from passes.codegen.machine import machine_of
from tensorkiln.errors import DiagnosticError
from tensorkiln.target import Target
from tests.codegen.objects import undefined_symbols

TARGETS = ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64"]
SCALE = """
define void @scale(ptr noalias %y, ptr noalias %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr inbounds float, ptr %x, i64 %i
  %to = getelementptr inbounds float, ptr %y, i64 %i
  %v = load float, ptr %from, align 4
  %w = fmul float %v, 2.0
  store float %w, ptr %to, align 4
  %next = add nuw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
"""
COPY = """
define void @copy(ptr %y, ptr %x, i64 %n) {
  call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 %n, i1 false)
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
CALLS = """
define internal void @body(ptr noalias %y, ptr noalias %x) alwaysinline {
  %v = load volatile float, ptr %x, align 4
  store volatile float %v, ptr %y, align 4
  ret void
}
define void @entry(ptr %y, ptr %x) {
  call void @body(ptr %y, ptr %x)
  ret void
}
"""
WIDE_INTEGERS = """
define void @converted(ptr %y, ptr %x) {
  %v = load <8 x i64>, ptr %x, align 8
  %w = uitofp <8 x i64> %v to <8 x float>
  store <8 x float> %w, ptr %y, align 4
  ret void
}
"""
TO_BFLOAT16 = """
define void @narrow(ptr noalias %y, ptr noalias %x) {
  %from = load <8 x float>, ptr %x
  %to = fptrunc <8 x float> %from to <8 x bfloat>
  store <8 x bfloat> %to, ptr %y
  ret void
}
"""
MASKED = """
define void @masked(ptr noalias %y, ptr noalias %x, <8 x i1> %mask) {
  %read = call <8 x float> @llvm.masked.load.v8f32.p0(ptr align 4 %x, <8 x i1> %mask, <8 x float> zeroinitializer)
  store <8 x float> %read, ptr %y
  ret void
}
declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, <8 x i1>, <8 x float>)
"""
FUSED = """
define float @fused(float %x) {
  %y = call float @llvm.fma.f32(float %x, float %x, float %x)
  ret float %y
}
declare float @llvm.fma.f32(float, float, float)
"""


def _load(code: bytes, name: str) -> tuple[llvm.ExecutionEngine, int]:
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine, engine.get_function_address(name)


def _with(level: str, *names: str) -> Target:
    target = Target.parse(level)
    return target.model_copy(update={"features": tuple(sorted({*target.features, *names}))})


@pytest.mark.parametrize("name", ["avx512fp16", "avx10.1", "avx10.2"])
def test_wide_integers_are_converted_where_the_processor_has_float16(name: str) -> None:
    target = _with("cpu:x86-64-v4", name)
    without = target.model_copy(update={"features": tuple(each for each in target.features if each != "avx512dq")})
    assert f"+{name}" not in machine_of(target).features.split(",")
    assert object_code.emit(WIDE_INTEGERS, without) == object_code.emit(
        WIDE_INTEGERS, without.model_copy(update={"features": tuple(set(without.features) - {name})})
    )


@pytest.mark.parametrize("level", ["cpu:x86-64-v3", "cpu:x86-64-v4"])
@pytest.mark.parametrize("name", ["avx512bf16", "avxneconvert", "avx10.1", "avx10.2"])
def test_float32_becomes_bfloat16_by_no_instruction_that_flushes_denormals(level: str, name: str) -> None:
    text = object_code.assembly(TO_BFLOAT16, _with(level, name))
    assert "neps2bf16" not in text
    assert text == object_code.assembly(TO_BFLOAT16, Target.parse(level))


def test_an_extension_of_avx512_does_not_imply_avx512() -> None:
    assert "{%k1}" in object_code.assembly(MASKED, _with("cpu:x86-64-v4", "avx512vbmi"))
    assert "{%k1}" not in object_code.assembly(MASKED, _with("cpu:x86-64-v3", "avx512vbmi", "avx512vl"))


@pytest.mark.parametrize("target", TARGETS)
def test_equal_input_gives_equal_bytes_and_calls_nothing(target: str) -> None:
    code = object_code.emit(SCALE, Target.parse(target))
    assert code == object_code.emit(SCALE, Target.parse(target))
    assert undefined_symbols(code) == frozenset()


@pytest.mark.parametrize(
    ("target", "register"),
    [("cpu:x86-64-v2", "xmm"), ("cpu:x86-64-v3", "ymm"), ("cpu:x86-64-v4", "zmm"), ("cpu:aarch64", ".4s")],
)
def test_a_loop_uses_the_widest_registers_of_the_target(target: str, register: str) -> None:
    assert register in object_code.assembly(SCALE, Target.parse(target))


@pytest.mark.parametrize("target", ["cpu:x86-64-v2", "cpu:native"])
def test_an_emitted_object_loads_and_runs(target: str) -> None:
    engine, address = _load(object_code.emit(SCALE, Target.parse(target)), "scale")
    x = np.arange(1001, dtype=np.float32)
    y = np.zeros_like(x)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)
    function(y.ctypes.data, x.ctypes.data, x.size)
    np.testing.assert_array_equal(y, x * 2)
    del engine


def test_memcpy_is_left_to_the_loader_and_resolves() -> None:
    code = object_code.emit(COPY, Target.parse("cpu:x86-64-v3"))
    assert undefined_symbols(code) == {"memcpy"}
    engine, address = _load(object_code.emit(COPY, Target.parse("cpu:native")), "copy")
    x = np.arange(1 << 16, dtype=np.int64)
    y = np.zeros_like(x)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)
    function(y.ctypes.data, x.ctypes.data, x.nbytes)
    np.testing.assert_array_equal(y, x)
    del engine


def test_a_call_into_the_maths_library_is_refused_by_name() -> None:
    with pytest.raises(DiagnosticError, match="fmaf") as caught:
        object_code.emit(FUSED, Target.parse("cpu:x86-64-v2"))
    assert caught.value.details["symbols"] == ["fmaf"]


@pytest.mark.parametrize("target", TARGETS[1:])
def test_a_fused_multiply_add_is_an_instruction_where_the_target_has_it(target: str) -> None:
    assert undefined_symbols(object_code.emit(FUSED, Target.parse(target))) == frozenset()


def test_text_that_llvm_does_not_read_is_a_diagnostic() -> None:
    with pytest.raises(DiagnosticError, match="expected"):
        object_code.emit("define void @f( {", Target.parse("cpu"))


def test_a_gpu_target_is_refused() -> None:
    with pytest.raises(DiagnosticError, match="cuda"):
        object_code.emit(SCALE, Target.parse("cuda:sm_90"))


def test_the_cpu_name_does_not_bring_instructions_that_the_feature_list_lacks() -> None:
    target = Target.parse("cpu:x86-64-v2").model_copy(update={"cpu": "znver4"})
    text = object_code.assembly(SCALE, target)
    assert "zmm" not in text
    assert "ymm" not in text


def test_an_object_of_which_the_sdk_would_load_nothing_is_refused_when_it_is_emitted() -> None:
    text = SCALE + "@mine = thread_local global i32 1\n"
    with pytest.raises(DiagnosticError, match=r"has a part that no kernel has: .*thread-local") as caught:
        object_code.emit(text, Target.parse("cpu:x86-64-v3"))
    assert caught.value.details["stage"] == "codegen"


def test_the_optimised_ir_can_be_read() -> None:
    assert "<16 x float>" in object_code.optimised_ir(SCALE, Target.parse("cpu:x86-64-v4"))


def test_inlined_functions_have_no_code_of_their_own() -> None:
    text = object_code.optimised_ir(CALLS, Target.parse("cpu:x86-64-v3"))
    assert "@body" not in text
    assert text.count("load volatile") == 1
