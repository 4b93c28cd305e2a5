"""What machines are known to be, what schedules cost on them, and which one is picked."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from passes.attributes import decode
from passes.cpu import contraction
from passes.cpu.machine import CORES, machine_of
from passes.cpu.strategies import STRATEGIES
from passes.gpu.machine import DEVICES
from passes.gpu.machine import machine_of as gpu_machine_of
from passes.schedule.attach import CANDIDATES, kernel_functions, schedule_of, work_of
from passes.schedule.cost import Cost, at_typical, at_upper_bounds
from passes.schedule.record import kernel_item, on_threads, tiles_of
from passes.strategy import MARGIN, Picker
from tensorkiln.architectures import ARCHITECTURES
from tensorkiln.build import Builder, Tensor, max_pool2d, scatter, softmax, transpose
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, floordiv, minimum, symbol
from tensorkiln.graph import Graph
from tensorkiln.schedule import ItemAnalysis, KernelItem, SharedArray
from tensorkiln.target import Target
from tests.compiled import compiled
from tests.passes.modules import after, body, machine, output

V4, H100 = "cpu:x86-64-v4", "cuda:sm_90"
Shape = tuple[Dim, ...]


def graph_of(make: Callable[..., Tensor], *shapes: Shape) -> Graph:
    b = Builder("work")
    b.symbol("n", 1, 4096)
    return output(b, make(*(b.input("float32", shape) for shape in shapes)))


def product(rows: Dim, columns: Dim, depth: Dim = 256) -> Graph:
    return graph_of(lambda a, b: a @ b, (rows, depth), (depth, columns))


def scaled(size: int) -> Graph:
    return graph_of(lambda x: x * 2.0, (size,))


def analysis(graph: Graph, target: str = V4) -> ItemAnalysis:
    (entry,) = compiled(graph, target).program.schedule.analysis
    return entry


def only_kernel(graph: Graph, target: str = V4) -> tuple[KernelItem, int, list[dict[str, Any]]]:
    """The schedule of the only kernel, its estimate, and what was offered."""
    module = after("schedule", graph, target)
    (function,) = kernel_functions(module).values()
    return schedule_of(function)[1], work_of(function)[1], decode(function.attributes[CANDIDATES])


def item_of(graph: Graph, target: str = V4) -> KernelItem:
    return only_kernel(graph, target)[0]


def estimate(graph: Graph, target: str = V4) -> int:
    return only_kernel(graph, target)[1]


def candidates(graph: Graph, target: str = V4) -> list[dict[str, Any]]:
    return only_kernel(graph, target)[2]


GROWING = {
    "product": [product(size, size, size) for size in (64, 128, 512, 1024)],
    "map": [scaled(size) for size in (1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 27)],
    "softmax": [graph_of(softmax, (size, 1000)) for size in (8, 256, 4096)],
}


@pytest.mark.parametrize("target", ["cpu:x86-64-v2", "cpu:x86-64-v3", V4, "cuda:sm_75", H100])
@pytest.mark.parametrize("kind", GROWING)
def test_more_of_the_same_takes_longer(kind: str, target: str) -> None:
    estimates = [estimate(graph, target) for graph in GROWING[kind]]
    assert all(less <= more for less, more in pairwise(estimates))
    assert estimates[0] < estimates[-1]


def test_an_estimate_is_that_of_the_targets_own_machine() -> None:
    graph = product(2048, 2048, 2048)
    portable, wide, small, large = (estimate(graph, t) for t in ("cpu:x86-64-v2", V4, "cuda:sm_75", H100))
    assert portable > 2 * wide > 20 * small > 40 * large > 0
    # 2 * 2048^3 operations at 16 lanes, a product each, and two of them at 3 GHz: a quarter more for packing and steps.
    assert wide == pytest.approx(1.25 * 2048**3 / (16 * 2 * 3.0), rel=0.1)
    copied = scaled(1 << 27)
    assert estimate(copied, H100) == pytest.approx(2**30 / DEVICES["sm_90"].rate, rel=0.1)


def test_reads_across_cache_lines_cost_more() -> None:
    along = estimate(graph_of(lambda x: x.sin(), (2048, 2048)))
    assert estimate(graph_of(lambda x: transpose(x).sin(), (2048, 2048))) > 1.5 * along


def test_a_transposition_in_registers_takes_as_long_as_its_memory() -> None:
    along = estimate(graph_of(lambda x: x + 1.0, (2048, 2048)))
    assert along <= estimate(graph_of(transpose, (2048, 2048))) < 1.5 * along


def test_the_program_states_the_estimate_of_its_kernels() -> None:
    graph = product(512, 512)
    assert analysis(graph).est_ns == estimate(graph)
    assert analysis(graph, H100).est_ns == estimate(graph, H100)
    assert compiled(graph, V4).program.schedule.estimated_runtime_ns == analysis(graph).est_ns


def test_an_estimate_is_for_the_largest_sizes_and_the_pick_for_typical_ones() -> None:
    symbolic, static = (estimate(product(rows, 512)) for rows in (symbol("n"), 4096))
    assert symbolic == pytest.approx(static, rel=0.1)
    at = at_typical({"n": (1, 1 << 20), "few": (1, 8), "many": (1000, 2000)})
    assert [at(symbol(name)) for name in ("n", "few", "many")] == [256, 8, 1000]


def test_sizes_are_typical_if_the_loops_of_a_kernel_are_not_too_short() -> None:
    samples, few = symbol("samples"), symbol("few")
    symbols = {"samples": (1, 1 << 16), "few": (1, 8)}
    loops = (samples, floordiv(samples, 320), minimum(few, 2), 512)
    assert [at_typical(symbols, loops=loops)(loop) for loop in loops] == [8192, 25, 2, 512]
    assert at_typical({**symbols, "samples": (1, 1000)}, loops=loops)(samples) == 1000


def test_every_architecture_has_a_device() -> None:
    assert {name.rstrip("af") for name in ARCHITECTURES} <= DEVICES.keys()
    assert gpu_machine_of(Target.parse("cuda:sm_90a")).device == DEVICES["sm_90"]


def test_a_cpu_of_no_name_has_a_core_all_the_same() -> None:
    known = Target(kind="cpu", triple="x86_64-unknown-linux-gnu", cpu="znver4", features=("avx512f", "avx512vl"))
    assert machine_of(known).core == CORES["znver4"]
    assert machine_of(known.model_copy(update={"cpu": "unheard-of"})).core not in CORES.values()


def test_an_element_is_kept_where_that_is_faster_than_to_compute_it_again() -> None:
    gpu = gpu_machine_of(Target.parse(H100))
    assert 1 < machine(V4).reload < gpu.reload < 100


def resident(shared: int, threads: int, registers: int = 0) -> float:
    arrays = [SharedArray(dtype=DType.INT8, elements=shared)] if shared else []
    item = kernel_item("k", (), on_threads(8, threads, "CUDA"), arrays)
    return gpu_machine_of(Target.parse(H100)).occupancy(item, at_upper_bounds({}), registers)


def test_occupancy_is_bounded_by_threads_shared_memory_and_registers() -> None:
    assert resident(0, 256) == 1.0
    assert resident(0, 32) == 0.5  # 32 work-groups of 32 threads, of 2048
    assert resident(100 << 10, 256) == 0.25  # two work-groups share 228 KiB
    assert resident(0, 256, registers=128) == 0.25
    assert resident(0, 768) == 0.75


def test_the_analysis_of_a_gpu_states_shared_memory_and_occupancy() -> None:
    entry = analysis(product(4096, 4096), H100)
    assert entry.smem_bytes == (2 * 16 * (128 + 4) + 32 * 128) * 4
    assert entry.occupancy == 0.875
    assert analysis(product(512, 512)).smem_bytes == 0


def test_the_candidates_of_all_strategies_that_can_run_a_kernel_are_on_record() -> None:
    offered = candidates(product(64, 512))
    assert [entry["strategy"] for entry in offered] == [*["contraction"] * 3, "loops", "loops"]
    assert len({entry["key"] for entry in offered}) == len(offered)
    assert all(entry["estimate_ns"] > 0 for entry in offered)


def test_a_key_outlives_names_and_changes_with_the_machine() -> None:
    def keys(name: str, target: str) -> list[str]:
        b = Builder(name)
        return [entry["key"] for entry in candidates(output(b, softmax(b.input("float32", (64, 100)))), target)]

    assert keys("one", V4) == keys("other", V4)
    assert set(keys("one", V4)).isdisjoint(keys("one", "cpu:x86-64-v3"))


def test_the_candidate_of_least_time_is_picked() -> None:
    assert tiles_of(item_of(product(64, 512)), "r0")[1] == 6
    assert tiles_of(item_of(product(64, 24)), "r0")[1] == 13
    assert tiles_of(item_of(product(1000, 24)), "r0")[1] == 14
    pool = graph_of(lambda x: max_pool2d(x, 3, padding=1), (1, 64, 21, 21))
    assert [entry["strategy"] for entry in candidates(pool)] == ["loops", "loops"]


def test_a_measured_time_stands_for_the_estimate() -> None:
    graph = product(64, 512)
    kernel = body(graph)
    picker = Picker(STRATEGIES, machine(V4))
    offer = picker(kernel)
    slowest = max(offer.candidates, key=lambda candidate: candidate.estimate_ns)
    measured = Picker(STRATEGIES, machine(V4), {slowest.key: 1.0})(kernel)
    assert (offer.choice.strategy, measured.choice.strategy) == ("contraction", "loops")
    assert [measured.candidates[measured.picked], *measured.candidates] == [slowest, *offer.candidates]


def test_an_estimate_is_not_compared_with_a_measured_time() -> None:
    kernel = body(product(64, 512))
    offer = Picker(STRATEGIES, machine(V4))(kernel)
    slowest = max(offer.candidates, key=lambda candidate: candidate.estimate_ns)
    measured = Picker(STRATEGIES, machine(V4), {slowest.key: 1e15})(kernel)
    assert measured.candidates[measured.picked] == slowest


def test_a_second_candidate_has_to_be_faster_by_a_margin() -> None:
    problem = contraction.find(body(product(64, 512)))
    assert problem is not None
    first, second, *_ = contraction.candidates(problem, machine(V4))
    key_of = {}
    picker = Picker(STRATEGIES, machine(V4))
    for candidate in picker(body(product(64, 512))).candidates:
        key_of.setdefault(candidate.strategy, []).append(candidate.key)
    fitted = key_of["contraction"]
    for share, expected in ((MARGIN * 0.99, second), (MARGIN * 1.01, first)):
        times = {key: 1e12 for keys in key_of.values() for key in keys} | {fitted[0]: 1000.0, fitted[1]: 1000.0 * share}
        assert Picker(STRATEGIES, machine(V4), times)(body(product(64, 512))).choice.item == expected.item


def test_a_cost_is_turned_into_time_by_what_takes_longer() -> None:
    core, item, at = machine(V4), kernel_item("k", (), on_threads(1, 1, "CUDA")), at_upper_bounds({})
    computes = core.nanoseconds(Cost(3e6, 0), item, at)
    assert computes == core.nanoseconds(Cost(3e6, 1000), item, at) == pytest.approx(1e6, rel=0.01)
    assert core.nanoseconds(Cost(0, 1 << 30), item, at) > computes


def test_a_reduction_of_one_element_has_rows() -> None:
    assert candidates(graph_of(lambda x: x.sum(1) + 1.0, (40, 1)))


def test_an_estimate_of_any_size_is_a_number_of_the_record() -> None:
    b = Builder("endless")
    n, m = b.symbol("n", 1, 1 << 24), b.symbol("m", 1, 1 << 23)
    graph = output(b, b.input("float32", (n, m)) @ b.input("float32", (m, n)))
    for target in (V4, H100):
        assert 1 << 50 < analysis(graph, target).est_ns < 1 << 63


@pytest.mark.parametrize("target", [V4, "cuda:sm_90"])
@pytest.mark.parametrize("shape", [(4, 3), (4096, 1), (1, 100_000)])
def test_a_scatter_is_offered_to_no_strategy_for_loops(shape: tuple[int, int], target: str) -> None:
    b = Builder("scatter")
    graph = output(b, scatter(b.input("int32", shape), b.input("float32", shape), 0, shape))
    assert [entry["strategy"] for entry in candidates(graph, target)] == ["scatter"]
