"""The text for the host: what is taken over, and what is refused by name rather than guessed."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from . import DeviceMemory, SimtModule, UnsupportedKernel
from .kernels import GLOBAL_INDEX, TID, element, kernel


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  %v = call i32 @llvm.nvvm.read.ptx.sreg.clock()\n", r"llvm\.nvvm\.read\.ptx\.sreg\.clock is not emulated"),
        ("  %v = call float @llvm.nvvm.ex2.approx.f(float 1.0)\n", r"llvm\.nvvm\.ex2\.approx\.f32 is not emulated"),
        ('  call void asm sideeffect "bar.sync 0;", ""()\n', r"assembly is not emulated: call void asm"),
        (
            "  %v = ptrtoint ptr addrspace(3) @s to i32\n  store i32 %v, ptr null\n",
            r"shared memory has 64-bit addresses here",
        ),
        ("  %v = load i32, ptr addrspace(7) null\n", r"memory of address space 7 is not emulated"),
        ("  %v = call float @__nv_expf(float 1.0)\n", r"the module does not define __nv_expf: %v = call"),
        ("  %v = add i32 1\n", r"no LLVM IR that this LLVM reads"),
    ],
)
def test_functions_without_an_equivalent_are_refused_by_name(body: str, message: str) -> None:
    outside = ["@s = internal addrspace(3) global [4 x i32] undef", "declare float @__nv_expf(float)"]
    with pytest.raises(UnsupportedKernel, match=message):
        SimtModule(kernel("", body, globals_=outside if "__nv" in body else outside[:1]))


def test_module_assembly_and_structures_passed_by_value_are_refused() -> None:
    with pytest.raises(UnsupportedKernel, match="assembly is not emulated: module asm"):
        SimtModule(kernel("", "", globals_=['module asm ".reg .b32 x;"']))
    with pytest.raises(UnsupportedKernel, match=r"@k has a parameter of type ptr .*byval"):
        SimtModule(kernel("ptr byval([4 x i64]) %a", ""))
    with pytest.raises(UnsupportedKernel, match=r"@k has a parameter of type <4 x i32>"):
        SimtModule(kernel("<4 x i32> %a", ""))


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("@v = internal addrspace(1) global i32 0", "a variable that outlives its block is not emulated: @v"),
        ("@v = external global i32", "a variable that outlives its block is not emulated: @v"),
        ("@v = internal addrspace(3) global i32 0", "shared memory has no value when a block begins: @v"),
    ],
)
def test_variables_that_the_emulator_would_get_wrong_are_refused(variable: str, message: str) -> None:
    with pytest.raises(UnsupportedKernel, match=message):
        SimtModule(kernel("", "", globals_=[variable]))


def test_a_function_that_nobody_calls_need_not_be_defined() -> None:
    SimtModule(kernel("", "", globals_=["declare float @__nv_expf(float)"])).launch("k", (1,), (1,), [])


def test_address_spaces_are_flat() -> None:
    body = (
        f"{TID}  %cast = addrspacecast ptr addrspace(3) @s to ptr\n{element('%p', 'ptr %cast', 'i32 %tid', 'i32')}"
        "  store i32 %tid, ptr %p\n  %g = addrspacecast ptr %y to ptr addrspace(1)\n"
        "  %room = alloca i32, addrspace(5)\n"
        f"{element('%q', 'ptr addrspace(3) @s', 'i32 %tid', 'i32')}  %v = load i32, ptr addrspace(3) %q\n"
        "  store i32 %v, ptr addrspace(5) %room\n  %w = load i32, ptr addrspace(5) %room\n"
        f"{element('%c', 'ptr addrspace(4) @table', 'i32 %tid', 'i32')}  %u = load i32, ptr addrspace(4) %c\n"
        f"  %sum = add i32 %w, %u\n{element('%py', 'ptr addrspace(1) %g', 'i32 %tid', 'i32')}"
        "  store i32 %sum, ptr addrspace(1) %py\n"
        "  call void @llvm.memcpy.p3.p4.i64(ptr addrspace(3) @s, ptr addrspace(4) @table, i64 4, i1 false)\n"
    )
    outside = [
        "@s = internal addrspace(3) global [4 x i32] undef",
        "@table = internal addrspace(4) constant [4 x i32] [i32 10, i32 20, i32 30, i32 40]",
    ]
    memory = DeviceMemory()
    result = memory.fresh((4,), np.int32)
    SimtModule(kernel("ptr %y", body, globals_=outside)).launch("k", (1,), (4,), [result])
    assert result.numpy().tolist() == [10, 21, 32, 43]


def test_device_only_annotations_are_dropped() -> None:
    text = kernel("ptr %y", "  store i32 5, ptr %y\n").replace(
        " {\n", ' "target-cpu"="sm_90" "target-features"="+ptx80" "nvvm.maxnreg"="32" {\n', 1
    )
    head = (
        'target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"\ntarget triple = "nvptx64-nvidia-cuda"\n'
        '@llvm.used = appending global [1 x ptr] [ptr @k], section "llvm.metadata"\n'
    )
    memory = DeviceMemory()
    result = memory.fresh((1,), np.int32)
    module = SimtModule(head + text)
    module.launch("k", (1,), (1,), [result])
    assert result.numpy()[0] == 5


def test_functions_of_the_device_are_called_and_kernels_know_what_they_use() -> None:
    outside = [
        "@s = internal addrspace(3) global [64 x i32] undef",
        "define internal i32 @meet(i32 %v) {\n  call void @llvm.nvvm.barrier0()\n  %r = add i32 %v, 1\n  ret i32 %r\n}",
    ]
    first = kernel("ptr %y", f"{TID}  %v = call i32 @meet(i32 %tid)\n  store i32 2, ptr %y\n", globals_=outside)
    module = SimtModule(first + kernel("", f"{TID}  store i32 0, ptr addrspace(3) @s\n", name='"odd name"'))
    assert module.entries["k"].suspends
    assert not module.entries["odd name"].suspends
    assert module.entries["odd name"].static_shared_bytes == 256
    memory = DeviceMemory()
    module.launch("k", (1,), (64,), [memory.fresh((1,), np.int32)])
    module.launch("odd name", (1,), (64,), [])


@pytest.mark.parametrize("count", [100, 100_000])
@pytest.mark.parametrize(("kind", "dtype"), [("half", np.float16), ("bfloat", ml_dtypes.bfloat16)])
def test_16_bit_floats_round_to_nearest_even(kind: str, dtype: type, count: int) -> None:
    body = (
        f"{GLOBAL_INDEX}{element('%px', 'ptr %x', 'i64 %i', 'double')}  %v = load double, ptr %px\n"
        f"  %n = fptrunc double %v to {kind}\n  %s = fptrunc double %v to float\n  %t = fptrunc float %s to {kind}\n"
        f"  %w = fpext {kind} %t to float\n  %back = fptrunc float %w to {kind}\n"
        f"{element('%py', 'ptr %y', 'i64 %i', kind)}  store {kind} %n, ptr %py\n"
        f"{element('%pz', 'ptr %z', 'i64 %i', kind)}  store {kind} %back, ptr %pz\n"
    )
    module, memory = SimtModule(kernel("ptr %x, ptr %y, ptr %z", body)), DeviceMemory()
    rng = np.random.default_rng(1)
    # Twelve bits of fraction make ties frequent, and rounding to float first harmless for all but the smallest.
    x = np.round(rng.uniform(1, 2, count) * 4096) / 4096 * np.exp2(rng.integers(-150, 140, count))
    x[:4] = [np.inf, -np.inf, np.nan, -0.0]
    buffers = memory.upload(x), memory.fresh((count,), np.dtype(dtype)), memory.fresh((count,), np.dtype(dtype))
    # The larger launch runs optimised code, in which conversions come in vectors.
    module.launch("k", (count // 50,), (50,), buffers)
    with np.errstate(over="ignore", under="ignore"):
        expected = x.astype(np.float32).astype(dtype).astype(np.float64)
    for buffer in buffers[1:]:
        np.testing.assert_array_equal(buffer.numpy().astype(np.float64), expected)
    assert np.signbit(buffers[1].numpy()[3])


@pytest.mark.parametrize("suffix", ["f", "d"])
def test_rounding_arithmetic_is_ieee(suffix: str) -> None:
    kind, dtype = ("float", np.float32) if suffix == "f" else ("double", np.float64)
    calls = {
        f"fma.rn.{suffix}": 3,
        f"add.rn.{suffix}": 2,
        f"mul.rn.{suffix}": 2,
        f"div.rn.{suffix}": 2,
        f"rcp.rn.{suffix}": 1,
        f"sqrt.rn.{suffix}": 1,
        f"fmax.{suffix}": 2,
        f"fmin.{suffix}": 2,
    }
    body = "".join(
        element(f"%p{n}", "ptr %x", f"i32 {n}", kind) + f"  %v{n} = load {kind}, ptr %p{n}\n" for n in range(3)
    )
    for n, (name, count) in enumerate(calls.items()):
        operands = ", ".join(f"{kind} %v{operand}" for operand in range(count))
        body += f"  %r{n} = call {kind} @llvm.nvvm.{name}({operands})\n"
        body += element(f"%q{n}", "ptr %y", f"i32 {n}", kind) + f"  store {kind} %r{n}, ptr %q{n}\n"
    memory = DeviceMemory()
    a, b, c = (dtype(value) for value in (0.1, -0.7, 0.3))
    source, result = memory.upload(np.array([a, b, c])), memory.fresh((len(calls),), dtype)
    SimtModule(kernel("ptr %x, ptr %y", body)).launch("k", (1,), (1,), [source, result])
    exact = np.longdouble(a) * np.longdouble(b) + np.longdouble(c)
    fused = dtype(exact) if suffix == "f" else result.numpy()[0]
    assert abs(np.longdouble(fused) - exact) <= np.spacing(abs(fused)) / 2
    expected = [fused, a + b, a * b, a / b, dtype(1) / a, np.sqrt(a), max(a, b), min(a, b)]
    np.testing.assert_array_equal(result.numpy(), np.array(expected, dtype))
