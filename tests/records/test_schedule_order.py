"""The algorithms over schedule items, with their corner cases."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorkiln.dtypes import DType
from tensorkiln.expr import maximum, symbol
from tensorkiln.schedule import (
    BufferInfo,
    Dependency,
    ItemAnalysis,
    IterSpace,
    KernelItem,
    Layout,
    Mapping,
    MemoryTransfer,
    Operation,
    Schedule,
    ScheduleContext,
    ScheduleError,
    Synchronization,
    compute_dependents,
    contiguous_strides,
    ensure3,
    estimate_peak_memory,
    find_critical_path,
    size_bytes_of_layout,
    sum_estimated_runtime_ns,
    topological_order,
    work_groups,
)

N = symbol("n")
DIAMOND = [(), (0,), (0,), (1, 2)]


def costs(*ns: int) -> list[ItemAnalysis]:
    return [ItemAnalysis(item_id=item, est_ns=value) for item, value in enumerate(ns)]


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((), ()), ((5,), (1,)), ((2, 3, 4), (12, 4, 1)), ((2, 0, 3), (3, 3, 1)), ((0, 2), (2, 1)), ((2, 0), (1, 1))],
)
def test_contiguous_strides_count_an_empty_size_as_one(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    assert contiguous_strides(shape) == strides


def test_contiguous_strides_of_symbolic_sizes_are_symbolic() -> None:
    assert contiguous_strides((2, N, 4)) == (4 * maximum(N, 1), 4, 1)


@pytest.mark.parametrize(
    ("dims", "three"), [((), (1, 1, 1)), ((4,), (4, 1, 1)), ((4, 5), (4, 5, 1)), ((4, 5, 6, 7), (4, 5, 6))]
)
def test_ensure3_pads_with_one_and_cuts_off(dims: tuple[int, ...], three: tuple[int, int, int]) -> None:
    assert ensure3(dims) == three


@pytest.mark.parametrize(
    ("dtype", "shape", "size"),
    [
        (DType.FLOAT32, (2, 3), 24),
        (DType.BOOL, (5,), 5),
        (DType.FLOAT64, (), 8),
        (DType.UNIT, (7,), 0),
        (DType.INT32, (3, 0), 0),
        (DType.BFLOAT16, (N,), 2 * N),
    ],
)
def test_the_size_of_a_layout_is_its_elements(dtype: DType, shape: tuple[int, ...], size: int) -> None:
    assert size_bytes_of_layout(dtype, Layout.row_major(shape)) == size


def test_the_default_layout_is_row_major_and_contiguous_in_every_axis() -> None:
    layout = Layout.row_major((2, 3))
    assert (layout.strides, layout.alignment, layout.vector_width, layout.contiguous_axes) == ((3, 1), 16, 1, (0, 1))


def test_dependents_are_the_reverse_of_dependencies_in_order_of_id() -> None:
    assert compute_dependents(DIAMOND) == ((1, 2), (3,), (3,), ())


def test_dependents_ignore_an_id_outside_the_items() -> None:
    assert compute_dependents([(), (0, 9), (-1,)]) == ((1,), (), ())


def test_the_topological_order_is_first_come_first_served_by_id() -> None:
    assert topological_order(DIAMOND) == (0, 1, 2, 3)
    assert topological_order([(2,), (2,), (), ()]) == (2, 3, 0, 1)
    assert topological_order([]) == ()


@pytest.mark.parametrize(
    ("depends_on", "stuck"), [([(1,), (0,)], "0, 1"), ([(), (1,)], "1"), ([(), (2,), (1,), (2,)], "1, 2, 3")]
)
def test_items_on_a_cycle_are_an_error_and_not_dropped(depends_on: list[tuple[int, ...]], stuck: str) -> None:
    with pytest.raises(ScheduleError, match=f"items {stuck} are on a cycle"):
        topological_order(depends_on)


def test_a_dependency_on_no_item_is_an_error_and_not_dropped() -> None:
    with pytest.raises(ScheduleError, match=r"item 1 depends on item 5, which is not in 0\.\.1"):
        topological_order([(), (5,)])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sets(st.integers(0, 15)), max_size=16))
def test_a_topological_order_puts_every_item_behind_its_dependencies(rows: list[set[int]]) -> None:
    depends_on = [tuple(sorted(p for p in row if p < item)) for item, row in enumerate(rows)]
    order = topological_order(depends_on)
    place = {item: position for position, item in enumerate(order)}
    assert sorted(order) == list(range(len(rows)))
    assert all(place[p] < place[item] for item, row in enumerate(depends_on) for p in row)


def test_the_critical_path_is_the_most_expensive_chain() -> None:
    assert find_critical_path(DIAMOND, costs(5, 1, 10, 5)) == (0, 2, 3)


def test_without_analysis_every_item_costs_one() -> None:
    assert find_critical_path([(), (), (1,)], []) == (1, 2)


def test_an_estimate_below_one_counts_as_one() -> None:
    assert find_critical_path([(), (0,), (1,), ()], costs(0, 0, 0, 2)) == (0, 1, 2)
    assert sum_estimated_runtime_ns((0, 1, 2), costs(0, 0, 7)) == 9


def test_of_equal_chains_the_one_that_ends_at_the_smallest_id_is_taken() -> None:
    assert find_critical_path([(), ()], costs(3, 3)) == (0,)
    assert find_critical_path(DIAMOND, costs(1, 4, 4, 1)) == (0, 1, 3)


def test_no_items_have_an_empty_critical_path() -> None:
    assert find_critical_path([], []) == ()
    assert sum_estimated_runtime_ns((), []) == 0


def test_analysis_of_items_that_do_not_exist_is_ignored() -> None:
    assert find_critical_path([()], [ItemAnalysis(item_id=3, est_ns=100)]) == (0,)


def test_an_item_without_analysis_counts_one_nanosecond() -> None:
    assert sum_estimated_runtime_ns((0, 1), [ItemAnalysis(item_id=0, est_ns=10)]) == 11


def kernel(inputs: list[BufferInfo], outputs: list[BufferInfo]) -> KernelItem:
    return KernelItem(
        kernel_id=0,
        kernel_name="k",
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        iter=IterSpace(axes=(), mapping=Mapping(), tiles=()),
        context=ScheduleContext(global_dims=(1, 1, 1), device="CPU"),
    )


def info(shape: tuple[int, ...]) -> BufferInfo:
    return BufferInfo.of(0, DType.FLOAT32, shape, (0, 0))


def transfer(size: int) -> MemoryTransfer:
    return MemoryTransfer(
        transfer_id=0, src_var=0, dst_var=1, src_device="CPU", dst_device="CPU", dims=(size,), size_bytes=size
    )


def test_the_peak_is_the_hungriest_item_inputs_and_outputs_together() -> None:
    operations: list[Operation] = [
        kernel([info((10,)), info((20,))], [info((5,))]),
        transfer(139),
        Synchronization(sync_id=0, sync_type="fence"),
    ]
    items = Schedule.build(operations).items
    assert estimate_peak_memory(items) == 4 * 35
    assert estimate_peak_memory(items[1:]) == 139
    assert estimate_peak_memory(items[2:]) == estimate_peak_memory(()) == 0


def test_a_built_schedule_has_everything_that_follows_from_its_edges() -> None:
    operations: list[Operation] = [transfer(1), transfer(2), transfer(3)]
    edges = [Dependency(dep_from=0, dep_to=2, dep_vars=(4,)), Dependency(dep_from=1, dep_to=2, kind="control")]
    schedule = Schedule.build(operations, edges, analysis=costs(10, 20, 30))
    assert [item.depends_on for item in schedule.items] == [(), (), (0, 1)]
    assert [item.dependents for item in schedule.items] == [(2,), (2,), ()]
    assert schedule.critical_path == (1, 2)
    assert (schedule.estimated_runtime_ns, schedule.total_memory_usage) == (50, 3)
    assert Schedule.model_validate_json(schedule.model_dump_json()) == schedule


def test_two_edges_between_the_same_items_are_one_dependency() -> None:
    edges = [Dependency(dep_from=0, dep_to=1, kind="data"), Dependency(dep_from=0, dep_to=1, kind="control")]
    schedule = Schedule.build([transfer(1), transfer(2)], edges)
    assert schedule.items[1].depends_on == (0,)
    assert len(schedule.dependencies) == 2


@pytest.mark.parametrize("edge", [(0, 5), (5, 0), (0, 0)])
def test_an_edge_that_leads_nowhere_or_back_is_refused(edge: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"which is not in|cycle"):
        Schedule.build([transfer(1), transfer(2)], [Dependency(dep_from=edge[0], dep_to=edge[1])])


def test_a_grid_in_threads_becomes_a_grid_in_work_groups() -> None:
    context = ScheduleContext(global_dims=(N, 100, 1), local_dims=(32, 8, 1), device="CUDA")
    groups = work_groups(context)
    assert groups[1:] == (13, 1)
    assert groups[0] == (N + 31) // 32
