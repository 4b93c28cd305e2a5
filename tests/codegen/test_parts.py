"""Large modules are compiled in parts, as are programs with loops; threads change no program."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
import pytest

from passes.codegen import nvjitlink, object_code, parts
from passes.compile import CompileRequest, compile_request
from tensorkiln.build import Builder, Tensor, exp2, pad, while_loop
from tensorkiln.elf import read_object
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.reference import evaluate
from tensorkiln.target import Target
from tests import checked
from tests.codegen.objects import undefined_symbols

TARGET: Final = Target.parse("cpu:native")
WIDTHS: Final = tuple(range(70, 94))


def caller(name: str, *callees: str) -> str:
    calls = "".join(f"  call void @{callee}(ptr %x)\n" for callee in callees)
    return f"define void @{name}(ptr %x) {{\n{calls}  ret void\n}}\n"


def body(name: str, stores: int, *callees: str) -> str:
    lines = "".join(f"  store volatile float {number}.0, ptr %x, align 4\n" for number in range(stores))
    calls = "".join(f"  call void @{callee}(ptr %x)\n" for callee in callees)
    return f"define internal void @{name}(ptr %x) noinline {{\n{lines}{calls}  ret void\n}}\n"


def module(*functions: str) -> str:
    return "\n".join(("; ModuleID = 'kernels'", *functions))


FOUR: Final = module(
    *(caller(f"kernel_{n}", f"body_{n}") + "\n" + body(f"body_{n}", 900, "small") for n in range(4)), body("small", 3)
)


def test_a_small_module_is_one_part() -> None:
    text = module(caller("one"), caller("two"))
    assert parts.divide(text) == (parts.Part(text, frozenset({"one", "two"})),)


def test_parts_define_each_kernel_once_and_all_that_it_calls() -> None:
    divided = parts.divide(FOUR)
    assert len(divided) == len(FOUR) // parts.SIZE > 1
    assert sorted(name for part in divided for name in part.functions) == [f"kernel_{n}" for n in range(4)]
    for part in divided:
        code = object_code.emit(part.llvm_ir, TARGET)
        assert undefined_symbols(code) == frozenset()
        assert {symbol.name for symbol in read_object(code).symbols if symbol.binding == 1} == part.functions


def test_a_large_function_stays_with_all_its_callers() -> None:
    shared = body("shared", 200)
    text = module(*(caller(f"kernel_{n}", f"body_{n}") + body(f"body_{n}", 900, "shared") for n in range(4)), shared)
    assert len(shared) > parts.SMALL
    (part,) = parts.divide(text)
    assert part.llvm_ir.count("define internal void @shared") == 1
    assert len(part.functions) == 4


def test_parts_are_sorted_by_size_and_follow_from_the_text() -> None:
    text = module(*(caller(f"kernel_{n}", f"body_{n}") + body(f"body_{n}", 300 * (n + 1)) for n in range(5)))
    divided = parts.divide(text)
    assert divided == parts.divide(text)
    assert [len(part.llvm_ir) for part in divided] == sorted((len(part.llvm_ir) for part in divided), reverse=True)


def towers() -> Graph:
    """A product, a row sum and a padding for each width, with symbolic rows."""
    b = Builder("towers")
    rows = b.symbol("n", 1, 40)
    for number, width in enumerate(WIDTHS):
        x, w = b.input("float32", (rows, width)), b.input("float32", (width, width + 3))
        y = exp2((x @ w) * 0.01)
        b.output(pad(y / y.sum(1, keepdims=True), ((1, 2), (0, number))))
    return b.graph()


def test_a_program_in_parts_is_the_same_with_and_without_threads() -> None:
    graph = towers()
    alone = compile_request(CompileRequest(graph, TARGET))
    with ThreadPoolExecutor(3) as pool:
        together = compile_request(CompileRequest(graph, TARGET), pool=pool)
    assert len({kernel.artifact for kernel in alone.program.kernels}) > 2
    assert together.artifacts == alone.artifacts
    assert together.program.with_stages({}, {}) == alone.program.with_stages({}, {})
    rng = np.random.default_rng(3)
    shapes = [shape for width in WIDTHS for shape in ((7, width), (width, width + 3))]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    for actual, expected in zip(checked.run(together, *arrays, n=7), evaluate(graph, *arrays, n=7), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def loops() -> Graph:
    """A loop in a loop, and one behind it. Two of the conditions have equal code."""
    b = Builder("loops")
    x = b.input("float32", (b.symbol("n", 0, 64),))

    def is_less(turn: Tensor, _: Tensor) -> Tensor:
        return turn < 3

    def doubled(turn: Tensor, y: Tensor) -> list[Tensor]:
        return [turn + 1, y + y]

    def raised(turn: Tensor, y: Tensor) -> list[Tensor]:
        _, inside = while_loop(is_less, doubled, [turn, y])
        return [turn + 1, inside + 1.0]

    _, y = while_loop(is_less, raised, [b.constant(0), x])
    _, z = while_loop(lambda turn, _: turn < 5, doubled, [b.constant(0), exp2(y * 0.01)])
    b.output(y, z)
    return b.graph()


def test_a_program_with_loops_is_the_same_with_and_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, texts, emit = loops(), list[str](), object_code.emit

    def counted(llvm_ir: str, target: Target) -> bytes:
        texts.append(llvm_ir)
        return emit(llvm_ir, target)

    monkeypatch.setattr(object_code, "emit", counted)
    alone = compile_request(CompileRequest(graph, TARGET))
    assert len(texts) == len(set(texts)) == len(alone.artifacts)
    with ThreadPoolExecutor(3) as pool:
        together = compile_request(CompileRequest(graph, TARGET), pool=pool)
    assert sorted(texts) == sorted([*set(texts)] * 2)
    assert together.artifacts == alone.artifacts
    assert together.program.with_stages({}, {}) == alone.program.with_stages({}, {})
    array = np.linspace(-1, 1, 9, dtype=np.float32)
    for actual, expected in zip(checked.run(together, array, n=9), evaluate(graph, array, n=9), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(nvjitlink.version() is None, reason="nvjitlink is not installed")
def test_each_kernel_of_a_gpu_is_in_its_text_and_its_cubin() -> None:
    request = CompileRequest(towers(), Target.parse("cuda:sm_90"), CompileOptions(cubin=True))
    alone = compile_request(request)
    with ThreadPoolExecutor(3) as pool:
        together = compile_request(request, pool=pool)
    assert together.artifacts == alone.artifacts
    assert len({(kernel.artifact, kernel.binary) for kernel in alone.program.kernels}) > 2
    for kernel in alone.program.kernels:
        assert kernel.artifact is not None
        assert kernel.binary is not None
        assert kernel.resources is not None
        assert f".entry {kernel.entry}(" in alone.artifacts[kernel.artifact].decode()
        cubin = read_object(alone.artifacts[kernel.binary])
        assert f".text.{kernel.entry}" in {section.name for section in cubin.sections}
