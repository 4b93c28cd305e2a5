"""Kernels are read once, and what stages share of them says nothing else than what each would read by itself."""

from __future__ import annotations

from typing import Any

import pytest

from dialect.mlir import ir
from dialect.remembered import Remembered
from passes import attributes
from passes.compile import CompileRequest, compile_request
from passes.cpu.strategies import STRATEGIES
from passes.loops.body import KernelBody
from passes.schedule import attach
from passes.strategy import Picker, matching
from passes.to_linalg import read_kernel as reading
from tensorkiln.build import Builder, matmul, max_pool2d, relu, softmax, take
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tests.compiled import compiled, target
from tests.passes.modules import after, body, output
from tests.passes.test_costs import V4, machine

TARGETS = ("cpu:x86-64-v4", "cuda:sm_90")


def network() -> Graph:
    """Weights that are packed, a product that is repeated on buffers of two kinds, windows, a gather, long sums."""
    b = Builder("network")
    n = b.symbol("n", 1, 64)
    x, weights = b.input("float32", (n, 32)), b.parameter("float32", (32, 48))
    hidden = softmax(relu(matmul(x, weights)))
    other = matmul(b.input("float32", (n, 32)), weights)
    pooled = max_pool2d(b.input("float32", (2, 4, 18, 18)), 3, padding=1)
    rows = take(b.input("float32", (70, 48)), b.input("int32", (n,)), 0)
    return output(b, hidden, other + rows, pooled, b.input("float32", (6, 40_000)).sum(1))


class Forgetful(dict[Any, Any]):
    """What is entered is not there."""

    def __setitem__(self, key: object, value: object) -> None:
        """Keep the last entry alone, which is asked for at once."""
        self.clear()
        super().__setitem__(key, value)

    def __contains__(self, key: object) -> bool:
        return False


@pytest.mark.parametrize("name", TARGETS)
def test_stages_that_read_for_themselves_compile_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = network()
    request = CompileRequest(graph, target(name), CompileOptions(dump_stages=True))
    shared = compile_request(request)
    monkeypatch.setattr(Remembered, "within", lambda *_: Forgetful())
    alone = compile_request(request)
    assert alone.artifacts == shared.artifacts
    assert alone.dumps == shared.dumps
    without_times = {"stages": ()}
    assert alone.program.model_copy(update=without_times) == shared.program.model_copy(update=without_times)


def test_no_stage_reads_a_kernel_that_another_has_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(*given: Any) -> KernelBody:
        made = KernelBody(*given)
        read.append(made.function.name + made.text)
        return made

    monkeypatch.setattr(reading, "KernelBody", counted)
    made = compiled(network(), TARGETS[0])
    assert len(read) == len(set(read)) >= len({kernel.entry for kernel in made.program.kernels}) > 5


def test_rejected_candidates_leave_a_body_unchanged() -> None:
    b = Builder("maps")
    kernel = body(output(b, b.input("float32", (600_000,)) * 2.0))
    matching(STRATEGIES, kernel)
    before = str(kernel.space.extents), str(kernel.space.symbols), str(kernel.nodes)
    Picker(STRATEGIES, machine(V4))(kernel)
    assert before == (str(kernel.space.extents), str(kernel.space.symbols), str(kernel.nodes))


def test_a_record_that_is_read_from_text_is_the_one_that_was_written() -> None:
    module = after("schedule", network())
    with ir.Context():
        again = ir.Module.parse(str(attach_only(module)))
        assert attach.read_buffers(again) == attach.read_buffers(module)
        assert attach.read_steps(again) == attach.read_steps(module)


def attach_only(module: ir.Module) -> ir.Module:
    """A module with the plan of another, and nothing else."""
    with module.context, ir.Location.unknown():
        made = ir.Module.create()
        made.operation.attributes[attach.PROGRAM] = module.operation.attributes[attach.PROGRAM]
    return made


def test_a_value_that_no_attribute_holds_is_refused() -> None:
    with ir.Context(), pytest.raises(TypeError, match="no attribute holds a set"):
        attributes.encode({1})
