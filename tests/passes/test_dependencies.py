"""Which step must follow which, and which need not."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from passes.plan.dependencies import dependencies
from passes.plan.program_plan import Step
from tensorkiln.buffers import Buffer
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, mul, symbol
from tensorkiln.schedule import Schedule
from tests.compiled import compiled
from tests.passes.shuffled import random_order
from tests.passes.test_aliasing import chain

N = symbol("n")


def buffer(number: int, group: int | None = None, offset: Dim = 0, size: Dim = 16) -> Buffer:
    return Buffer(
        id=number,
        dtype=DType.FLOAT32,
        shape=(),
        size_bytes=size,
        role="temp",
        lifetime=(0, 1 << 20),
        alias_group=group,
        offset=offset,
    )


def edges(
    buffers: list[Buffer], *steps: tuple[tuple[int, ...], tuple[int, ...]], n: tuple[int, int] = (0, 100)
) -> list[tuple[int, int, str, tuple[int, ...]]]:
    """`(from, to, kind, buffers)` for steps that read and write these."""
    made = [Step(f"kernel_{number}", None, reads, writes) for number, (reads, writes) in enumerate(steps)]
    found = dependencies(made, buffers, {"n": n})
    return [(edge.dep_from, edge.dep_to, edge.kind, edge.dep_vars) for edge in found]


def test_reads_depend_on_earlier_writes() -> None:
    buffers = [buffer(number) for number in range(4)]
    assert edges(buffers, ((), (0,)), ((), (1,)), ((1, 0), (2,)), ((2,), (3,))) == [
        (0, 2, "data", (0,)),
        (1, 2, "data", (1,)),
        (2, 3, "data", (2,)),
    ]


def test_two_buffers_of_one_writer_make_one_edge() -> None:
    buffers = [buffer(number) for number in range(3)]
    assert edges(buffers, ((), (0, 1)), ((0, 1, 0), (2,))) == [(0, 1, "data", (0, 1))]


def test_readers_come_before_what_overwrites() -> None:
    """Step 3 computes buffer 3 in place of buffer 0, which steps 1 and 2 read as well."""
    buffers = [buffer(0, 7), buffer(1), buffer(2), buffer(3, 7)]
    assert edges(buffers, ((), (0,)), ((0,), (1,)), ((0,), (2,)), ((0,), (3,))) == [
        (0, 1, "data", (0,)),
        (0, 2, "data", (0,)),
        (0, 3, "data", (0,)),
        (1, 3, "control", (3,)),
        (2, 3, "control", (3,)),
    ]


def test_a_writer_comes_before_what_overwrites_even_when_nobody_reads() -> None:
    buffers = [buffer(0, 7), buffer(1, 7)]
    assert edges(buffers, ((), (0,)), ((), (1,))) == [(0, 1, "control", (1,))]


def test_transitive_edges_are_left_out() -> None:
    """Step 2 follows the reader of buffer 0, which follows its writer."""
    buffers = [buffer(0, 7), buffer(1), buffer(2, 7)]
    assert edges(buffers, ((), (0,)), ((0,), (1,)), ((), (2,))) == [(0, 1, "data", (0,)), (1, 2, "control", (2,))]
    assert edges(buffers, ((), (0,)), ((0,), (1,)), ((1,), (2,))) == [(0, 1, "data", (0,)), (1, 2, "data", (1,))]


def test_data_edges_stay_though_others_imply_them() -> None:
    buffers = [buffer(0), buffer(1), buffer(2)]
    assert (0, 2, "data", (0,)) in edges(buffers, ((), (0,)), ((0,), (1,)), ((0, 1), (2,)))


def test_the_last_writer_counts() -> None:
    buffers = [buffer(0, 1), buffer(1, 1), buffer(2)]
    assert edges(buffers, ((), (0,)), ((0,), (1,)), ((1,), (2,))) == [(0, 1, "data", (0,)), (1, 2, "data", (1,))]


def test_disjoint_windows_of_one_storage_are_independent() -> None:
    buffers = [buffer(0, 1, 0), buffer(1, 1, 16), buffer(2, 1, 0, 32), buffer(3)]
    assert edges(buffers, ((), (0,)), ((), (1,)), ((2,), (3,))) == [(0, 2, "data", (2,)), (1, 2, "data", (2,))]


def test_windows_that_overlap_are_not() -> None:
    buffers = [buffer(0, 1, 0), buffer(1, 1, 8)]
    assert edges(buffers, ((), (0,)), ((), (1,))) == [(0, 1, "control", (1,))]


@pytest.mark.parametrize(("second", "independent"), [(mul(4, N), True), (mul(8, N), True), (mul(2, N), False)])
def test_symbolic_windows_are_independent_when_they_are_for_all_sizes(second: Dim, independent: bool) -> None:
    buffers = [buffer(0, 1, 0, mul(4, N)), buffer(1, 1, second, mul(4, N))]
    assert (edges(buffers, ((), (0,)), ((), (1,))) == []) == independent


def test_the_bounds_of_symbols_count() -> None:
    buffers = [buffer(0, 1, 0, mul(4, N)), buffer(1, 1, 40, 16)]
    assert edges(buffers, ((), (0,)), ((), (1,)), n=(0, 10)) == []
    assert edges(buffers, ((), (0,)), ((), (1,)), n=(0, 11)) == [(0, 1, "control", (1,))]


def test_a_part_that_is_overwritten_leaves_the_rest() -> None:
    """Step 2 reads all: what is left of step 0, and step 1."""
    buffers = [buffer(0, 1, 0, 32), buffer(1, 1, 16), buffer(2)]
    assert edges(buffers, ((), (0,)), ((), (1,)), ((0,), (2,))) == [
        (0, 1, "control", (1,)),
        (0, 2, "data", (0,)),
        (1, 2, "data", (0,)),
    ]


def test_an_input_makes_no_edges() -> None:
    buffers = [buffer(number) for number in range(4)]
    assert edges(buffers, ((0,), (1,)), ((0,), (2,)), ((0,), (3,))) == []


def test_a_program_in_place_has_control_edges_where_another_reads_what_is_overwritten() -> None:
    schedule = compiled(chain(5)).program.schedule
    kinds = {(edge.dep_from, edge.dep_to): edge.kind for edge in schedule.dependencies}
    assert len(kinds) == len(schedule.dependencies)
    assert all(kinds[2 * number, 2 * number + 1] == "data" for number in range(5))
    assert {order for order in _orders(schedule)} == {tuple(range(10))}, "each item needs the one before"


def _orders(schedule: Schedule) -> list[tuple[int, ...]]:
    return [tuple(random_order(schedule, np.random.default_rng(seed))) for seed in range(20)]


def brute_force(steps: list[tuple[tuple[int, ...], tuple[int, ...]]], buffers: list[Buffer]) -> set[tuple[int, int]]:
    """All pairs of steps that must keep their order, transitively closed."""
    span = {b.id: range(int(str(b.offset)), int(str(b.offset)) + int(str(b.size_bytes))) for b in buffers}
    group = {b.id: -1 - b.id if b.alias_group is None else b.alias_group for b in buffers}

    def meet(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        return any(
            group[a] == group[b] and max(span[a].start, span[b].start) < min(span[a].stop, span[b].stop)
            for a, b in itertools.product(one, other)
        )

    found = {
        (first, second)
        for second in range(len(steps))
        for first in range(second)
        if meet(steps[first][1], steps[second][0] + steps[second][1]) or meet(steps[first][0], steps[second][1])
    }
    return closed(found, len(steps))


def closed(pairs: set[tuple[int, int]], count: int) -> set[tuple[int, int]]:
    reached: list[set[int]] = []
    for number in range(count):
        direct = {first for first, second in pairs if second == number}
        reached.append(direct.union(*(reached[first] for first in direct)))
    return {(first, number) for number in range(count) for first in reached[number]}


@pytest.mark.parametrize("seed", range(60))
def test_the_edges_keep_every_pair_in_order_that_must_be_and_no_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    buffers = [
        buffer(number, int(rng.integers(0, 2)), int(rng.integers(0, 4)) * 8, int(rng.integers(0, 4)) * 8)
        for number in range(8)
    ]
    steps = [
        tuple(tuple(int(b) for b in rng.choice(8, rng.integers(0, 3), replace=False)) for _ in range(2))
        for _ in range(10)
    ]
    found = edges(buffers, *steps)  # type: ignore[arg-type]
    pairs = {(first, second) for first, second, _, _ in found}
    assert len(pairs) == len(found)
    assert closed(pairs, 10) == brute_force(steps, buffers)  # type: ignore[arg-type]


def test_work_grows_with_the_number_of_steps_only() -> None:
    def calls(count: int) -> int:
        buffers = [buffer(number, number % 3) for number in range(count + 1)]
        steps = [Step(f"kernel_{n}", None, (n, 0), (n + 1,)) for n in range(count)]
        made = itertools.count()
        sys.setprofile(lambda *_: next(made))
        try:
            dependencies(steps, buffers, {})
        finally:
            sys.setprofile(None)
        return next(made)

    assert calls(4000) < 25 * calls(200), "20 times as many steps; quadratic, it would be 400"
