"""A graph compiled for a CPU and for a GPU: two programs of the same records, cut into the same kernels."""

from __future__ import annotations

import json

import pytest

from tensorkiln.expr import evaluate
from tensorkiln.schedule import KernelItem
from tensorkiln.spec import CompiledProgram
from tests.compiled import shared
from tests.networks.schedules import check_edges, check_items
from tests.passes.gpu.graphs import GRAPHS

TARGETS = ("cpu:x86-64-v3", "cuda:sm_90")


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("name", GRAPHS)
def test_the_schedule_is_whole(name: str, target: str) -> None:
    graph = GRAPHS[name]()
    program = shared(graph, target).program
    check_items(program, len(graph.nodes))
    check_edges(program.schedule)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_record_survives_the_wire(name: str, target: str) -> None:
    program = shared(GRAPHS[name](), target).program
    assert CompiledProgram.model_validate(json.loads(program.model_dump_json())) == program


@pytest.mark.parametrize("name", GRAPHS)
def test_both_targets_run_the_same_nodes_in_the_same_kernels(name: str) -> None:
    graph = GRAPHS[name]()
    fused = [[item.ops for item in _kernels(shared(graph, target).program)] for target in TARGETS]
    assert fused[0] == fused[1]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_launch_is_what_the_schedule_says(name: str, target: str) -> None:
    graph = GRAPHS[name]()
    symbols = dict.fromkeys(graph.symbols, 100)
    program = shared(graph, target).program
    for item in _kernels(program):
        kernel = program.kernels[item.kernel_id]
        launch = kernel.launch_dims(symbols)
        threads = launch.local_size or (1, 1, 1)
        context = item.context
        assert context.device == program.target.home_device
        total = [evaluate(size, symbols) for size in context.global_dims]
        groups = [-(-all_of // one) for all_of, one in zip(total, threads, strict=True)]
        assert list(launch.global_size) == [max(groups[0], 1), *groups[1:]]
        assert [evaluate(size, symbols) for size in context.local_dims] == list(threads)


def _kernels(program: CompiledProgram) -> list[KernelItem]:
    return [item.operation for item in program.schedule.items if isinstance(item.operation, KernelItem)]
