"""A GPU of another vendor is a machine and a table of intrinsics: kernels are scheduled and realised for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dialect.mlir import arith, ir, nvvm
from passes.boundary import require
from passes.gpu.intrinsics import NVVM
from passes.gpu.machine import DEVICES, Machine
from passes.gpu.pipeline import gpu_pipeline
from passes.scalar.traits import PORTABLE
from passes.schedule.attach import kernel_functions, schedule_of
from tensorkiln.build import Builder, softmax
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tests.filecheck import check_ir
from tests.passes.modules import kiln

WAVE = 64


def exchange(word: ir.Value, distance: int, wave: int) -> ir.Value:
    """Any operation that tells the distance and the wave."""
    kind = ir.IntegerType.get_signless(32)
    told = arith.constant(kind, 1000 * wave + distance)
    return arith.bitcast(word.type, arith.xori(arith.bitcast(kind, word), told))


OTHER = replace(NVVM, thread=nvvm.read_ptx_sreg_laneid, exchange=exchange)
MACHINE = Machine(PORTABLE, replace(DEVICES["sm_90"], wave=WAVE), OTHER, "HIP")


def after(stage: str, graph: Graph) -> ir.Module:
    module = kiln(graph)
    for step in gpu_pipeline(MACHINE, CompileOptions()):
        module = step.run(module)
        require(step.name, module, step.leaves)
        assert module.operation.verify()
        if step.name == stage:
            return module
    raise LookupError(stage)


def rows(b: Builder) -> None:
    b.output(softmax(b.input("float32", (4096, 1000))))


def product(b: Builder) -> None:
    b.output(b.input("float32", (128, 64)) @ b.input("float32", (64, 256)))


def points(b: Builder) -> None:
    b.output(b.input("float32", (1000,)) * 2.0)


def graph_of(write: Callable[[Builder], None]) -> Graph:
    b = Builder("other")
    write(b)
    return b.graph()


@pytest.mark.parametrize("write", [rows, product, points])
def test_records_name_its_devices_and_work_groups_are_whole_waves(write: Callable[[Builder], None]) -> None:
    module = after("schedule", graph_of(write))
    (function,) = kernel_functions(module).values()
    _, item = schedule_of(function)
    assert item.context.device == "HIP"
    threads = item.context.local_dims[0]
    assert isinstance(threads, int)
    assert threads % WAVE == 0


@pytest.mark.parametrize("write", [rows, product, points])
def test_every_strategy_speaks_its_table(write: Callable[[Builder], None]) -> None:
    text = str(after("lower", graph_of(write)))
    assert "laneid" in text
    assert "tid.x" not in text


def test_a_row_is_combined_over_waves_of_its_size() -> None:
    check_ir(
        after("realise", graph_of(rows)),
        """
        // CHECK: arith.constant 64032 : i32
        // CHECK: arith.constant 64016 : i32
        // CHECK: arith.constant 64001 : i32
        """,
    )
