"""Which strategy runs a kernel on a GPU, and over how many threads."""

from __future__ import annotations

import pytest

from tensorkiln.expr import evaluate
from tensorkiln.schedule import work_groups

from .graphs import GRAPHS, scheduled

LAUNCHES = {
    "added": ("points", 64, 256),
    "added_symbolic": ("points", 1, 256),
    "shuffled": ("points", 10, 256),
    "softmax_rows": ("rows", 4096, 256),
    "softmax_symbolic": ("rows", 300, 256),
    "short_rows": ("rows", 20, 256),
    "columns": ("rows", 3, 1024),
    "normalised": ("rows", 64, 256),
    "dense": ("contraction", 247, 256),
    "scattered": ("scatter", 4, 256),
    "summed_rows": ("combining", 64, 256),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_launch_covers_the_kernel(name: str) -> None:
    strategy, item = scheduled(GRAPHS[name]())
    groups = evaluate(work_groups(item.context)[0], {"n": 300})
    assert (strategy, groups, item.context.local_dims[0]) == LAUNCHES[name]


def test_threads_times_groups_are_the_axes_on_those_levels() -> None:
    for make in GRAPHS.values():
        _, item = scheduled(make())
        axes, mapping = item.iter.axes, item.iter.mapping
        block = [evaluate(axes[number].extent, {"n": 300}) for number in mapping.block]
        thread = [evaluate(axes[number].extent, {"n": 300}) for number in mapping.thread]
        groups = evaluate(work_groups(item.context)[0], {"n": 300})
        assert _product(block) == groups
        assert _product(thread) == item.context.local_dims[0]


def _product(sizes: list[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def test_a_row_that_is_kept_is_in_shared_memory() -> None:
    _, item = scheduled(GRAPHS["softmax_rows"]())
    assert [(array.dtype, array.elements) for array in item.shared] == [("float32", 16), ("float32", 1024)]


def test_the_reductions_are_marked_with_how_lanes_combine() -> None:
    _, item = scheduled(GRAPHS["softmax_rows"]())
    assert item.reduce is not None
    assert item.reduce.intra_thread == "shfl"
    assert {item.iter.axes[number].role for number in item.reduce.axes} == {"reduction"}
