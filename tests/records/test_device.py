"""D1-D10: a device, its tool chain, and the kernels that it makes, on a back end that really compiles."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tensorkiln.device import Device, KernelCache, KernelProgram
from tensorkiln.errors import CallInputError, DeviceError
from tensorkiln.launch import Binary, BinaryOp, Const, LaunchNode, Unary, UnaryOp
from tensorkiln.program_walk import content_digest
from tensorkiln.runtime.blocks import BlockPool
from tensorkiln.runtime.cpu import CpuKernel, cpu_runtime
from tensorkiln.spec import CompiledSpec, ProgramSpec
from tests.records.toy_backend import (
    SourceOnlyCompiler,
    ToyCompiler,
    ToyRenderer,
    cubic_sine,
    element,
    kernel,
)

ADD = kernel(Binary(BinaryOp.ADD, element(0), element(1)), 2)
Array = np.ndarray[Any, np.dtype[np.float32]]


def device(spec: str = "CPU", compiler: ToyCompiler | None = None, cache: KernelCache | None = None) -> Device:
    return Device.new(
        spec, BlockPool(slack=False), ToyRenderer(spec), compiler or ToyCompiler(), cpu_runtime, cache=cache
    )


def execute(program: KernelProgram, arrays: Sequence[Array]) -> Array:
    out = np.empty_like(arrays[0])
    groups = (len(out), 1, 1)
    program.execute([array.ctypes.data for array in (*arrays, out)], [len(out)], groups, None)
    return out


def test_d1_a_new_device_has_one_tool_chain_and_that_is_its_own() -> None:
    renderer, compiler = ToyRenderer("CPU"), ToyCompiler()
    made = Device.new("CPU", BlockPool(slack=False), renderer, compiler, cpu_runtime)
    assert made.compilers == ((renderer, compiler),)
    assert made.renderer is made.compilers[0][0] is renderer
    assert made.compiler is made.compilers[0][1] is compiler


def test_d2_a_kernel_is_rendered_compiled_loaded_and_executed_in_that_order() -> None:
    calls: list[str] = []

    class Renderer(ToyRenderer):
        def render(self, ast: LaunchNode, name: str | None) -> ProgramSpec:
            calls.append("render")
            return super().render(ast, name)

    class Compiler(ToyCompiler):
        def compile(self, spec: ProgramSpec) -> CompiledSpec:
            calls.append("compile")
            return super().compile(spec)

    def runtime(compiled: CompiledSpec) -> CpuKernel:
        calls.append("runtime")
        return cpu_runtime(compiled)

    made = Device.new("CPU", BlockPool(slack=False), Renderer("CPU"), Compiler(), runtime)
    values = np.arange(10, dtype=np.float32)
    assert execute(made.load(ADD), [values, values]).tolist() == (values * 2).tolist()
    assert calls == ["render", "compile", "runtime"]


def test_d3_a_kernel_without_a_name_is_called_kernel() -> None:
    assert device().renderer.render(ADD, None).name == "kernel"
    assert device().load(ADD, "sum").name == "sum"
    assert device("CUDA:1").renderer.device == "CUDA:1"


@pytest.mark.parametrize(
    ("spec", "key"), [("CPU", "CPU"), ("CUDA", "CUDA"), ("CUDA:0", "CUDA"), ("CUDA:1", "CUDA"), ("Metal:0", "Metal")]
)
def test_d4_the_base_key_of_a_device_has_no_number(spec: str, key: str) -> None:
    assert device(spec).base_device_key == key


def test_d4_a_kernel_compiled_on_one_device_is_found_on_the_next() -> None:
    cache, compiler = KernelCache(), ToyCompiler()
    first, second = (device(spec, compiler, cache) for spec in ("CUDA:0", "CUDA:1"))
    assert first.compile(ADD) is second.compile(ADD)
    assert compiler.compiled == ["kernel"]


def test_d4_a_kernel_of_another_kind_of_device_is_not_found() -> None:
    cache, compiler = KernelCache(), ToyCompiler()
    device("CUDA:0", compiler, cache).compile(ADD)
    device("CPU", compiler, cache).compile(ADD)
    assert len(compiler.compiled) == 2


def test_d5_two_compilers_of_one_device_do_not_share_kernels() -> None:
    cache = KernelCache()
    first, second = ToyCompiler("clang 20 -O3 x86-64-v3"), ToyCompiler("llvm-jit 22 -O3 x86-64-v3")
    device("CPU", first, cache).compile(ADD)
    device("CPU", second, cache).compile(ADD)
    assert (len(first.compiled), len(second.compiled)) == (1, 1)


def test_d5_two_kernels_do_not_share_an_entry_and_equal_ones_do() -> None:
    made = device()
    other = kernel(Binary(BinaryOp.MUL, element(0), element(1)), 2)
    again = kernel(Binary(BinaryOp.ADD, element(0), element(1)), 2)
    assert content_digest(ADD) == content_digest(again) != content_digest(other)
    assert made.compile(ADD) is made.compile(again)
    assert made.compile(ADD) is not made.compile(other)


def test_d6_a_just_in_time_compiler_leaves_source_and_an_ahead_of_time_one_bytes() -> None:
    later = device(compiler=SourceOnlyCompiler()).compile(ADD)
    assert later.src is not None
    assert later.bytes == b""
    ahead = device().compile(ADD)
    assert ahead.src is None
    assert ahead.bytes


def test_d7_without_a_decompositor_nothing_is_rewritten() -> None:
    renderer = ToyRenderer("CPU")
    assert renderer.decompositor() is None
    Device.new("CPU", BlockPool(slack=False), renderer, ToyCompiler(), cpu_runtime).compile(ADD)
    assert renderer.seen[-1] == "Sink"
    assert "Add" in renderer.seen


def test_d7_what_a_back_end_lacks_is_rewritten_before_it_renders() -> None:
    renderer = ToyRenderer("CPU", rule=cubic_sine)
    made = Device.new("CPU", BlockPool(slack=False), renderer, ToyCompiler(), cpu_runtime)
    sine_of_double = Unary(UnaryOp.SIN, Binary(BinaryOp.MUL, element(0), Const(2.0)))
    values = np.linspace(-0.05, 0.05, 33, dtype=np.float32)
    np.testing.assert_allclose(execute(made.load(kernel(sine_of_double, 1)), [values]), np.sin(2 * values), atol=1e-6)
    assert "Sin" not in renderer.seen
    assert "Sub" in renderer.seen


def test_d8_a_runtime_may_be_asked_many_times_by_many_threads() -> None:
    compiled = device().compile(ADD)
    values = np.arange(50, dtype=np.float32)

    def load_and_run(_: int) -> list[float]:
        return execute(cpu_runtime(compiled), [values, values]).tolist()

    with ThreadPoolExecutor(8) as pool:
        assert all(result == (values * 2).tolist() for result in pool.map(load_and_run, range(40)))


def test_d8_code_that_cannot_be_loaded_is_an_error_value() -> None:
    with pytest.raises(DeviceError, match="not a 64-bit ELF object"):
        cpu_runtime(CompiledSpec.from_bytes("k", b"garbage", "0" * 64))
    with pytest.raises(DeviceError, match="the CPU runtime loads objects, not source"):
        cpu_runtime(device(compiler=SourceOnlyCompiler()).compile(ADD))


def test_d9_one_kernel_runs_in_many_threads_on_their_own_buffers() -> None:
    program = device().load(ADD)
    start = threading.Barrier(8)

    def run(seed: int) -> bool:
        values = np.random.default_rng(seed).random(5000, np.float32)
        start.wait()
        return all(np.array_equal(execute(program, [values, values]), values + values) for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8)))


def test_d10_buffers_and_values_are_positional() -> None:
    minus = device().load(kernel(Binary(BinaryOp.SUB, element(0), element(1)), 2), "minus")
    assert minus.name == "minus"
    five, three = np.full(4, 5, np.float32), np.full(4, 3, np.float32)
    assert execute(minus, [five, three]).tolist() == [2.0] * 4
    assert execute(minus, [three, five]).tolist() == [-2.0] * 4


def test_d10_without_a_grid_there_is_one_work_group() -> None:
    out = np.zeros(4, np.float32)
    ones = np.ones(4, np.float32)
    device().load(ADD).execute([ones.ctypes.data, ones.ctypes.data, out.ctypes.data], [4])
    assert out.tolist() == [2, 0, 0, 0]


@pytest.mark.parametrize(
    ("buffers", "vals", "message"),
    [
        (2, 1, "kernel kernel takes 3 buffers, got 2"),
        (4, 1, "kernel kernel takes 3 buffers, got 4"),
        (3, 0, "kernel kernel takes 1 values, got 0"),
        (3, 2, "kernel kernel takes 1 values, got 2"),
    ],
)
def test_d10_wrong_counts_are_an_error_and_not_a_crash(buffers: int, vals: int, message: str) -> None:
    with pytest.raises(CallInputError, match=message):
        device().load(ADD).execute([0] * buffers, [0] * vals)


def test_threads_that_miss_one_kernel_at_once_get_one_compile() -> None:
    compiler = ToyCompiler()
    made = device(compiler=compiler)
    start = threading.Barrier(8)

    def compile_it(_: int) -> CompiledSpec:
        start.wait()
        return made.compile(ADD)

    with ThreadPoolExecutor(8) as pool:
        specs = list(pool.map(compile_it, range(8)))
    assert all(spec is specs[0] for spec in specs)
    assert len(compiler.compiled) == 1


def test_a_compile_that_fails_is_tried_again() -> None:
    cache = KernelCache()
    key = ("a", "b", "c")

    def fail() -> CompiledSpec:
        raise DeviceError("no compiler")

    with pytest.raises(DeviceError, match="no compiler"):
        cache.get(key, fail)
    good = CompiledSpec.from_bytes("k", b"x", "0" * 64)
    assert cache.get(key, lambda: good) is good
