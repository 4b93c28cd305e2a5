"""The arena planner alone."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tensorkiln.runtime.arena import Interval, plan_arena


def test_a_chain_needs_room_for_two_neighbours_only() -> None:
    chain = [Interval(key, 1024, key, key + 1) for key in range(10)]
    assert plan_arena(chain).size == 2048


def test_values_needed_at_the_same_step_do_not_share() -> None:
    plan = plan_arena([Interval(0, 100, 0, 3), Interval(1, 100, 3, 5)])
    assert sorted(plan.offsets.values()) == [0, 128]


def test_a_value_goes_into_the_tightest_gap_that_fits() -> None:
    early_wide, early_tight = Interval(0, 4096, 0, 0), Interval(2, 2944, 0, 0)
    lasting = [Interval(1, 3008, 0, 1), Interval(3, 2880, 0, 1)]
    late = Interval(4, 2816, 1, 1)
    plan = plan_arena([early_wide, early_tight, *lasting, late])
    assert plan.offsets == {0: 0, 1: 4096, 2: 7104, 3: 10048, 4: 7104}


def test_an_empty_value_takes_no_room() -> None:
    plan = plan_arena([Interval(0, 0, 0, 1), Interval(1, 64, 0, 1)])
    assert (plan.size, plan.offsets) == (64, {0: 0, 1: 0})


def test_no_values_need_no_arena() -> None:
    assert plan_arena([]).size == 0


INTERVALS = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 20), st.integers(0, 6)), max_size=30).map(
    lambda rows: [Interval(key, size, first, first + length) for key, (size, first, length) in enumerate(rows)]
)


@settings(max_examples=60, deadline=None)
@given(INTERVALS)
def test_overlapping_lifetimes_never_share_a_byte(intervals: list[Interval]) -> None:
    plan = plan_arena(intervals)
    for one in intervals:
        assert plan.offsets[one.key] % 64 == 0
        assert plan.offsets[one.key] + one.size <= plan.size
        for other in intervals:
            apart_in_time = one.last < other.first or other.last < one.first
            start, stop = plan.offsets[one.key], plan.offsets[one.key] + one.size
            apart_in_space = stop <= plan.offsets[other.key] or plan.offsets[other.key] + other.size <= start
            assert one is other or apart_in_time or apart_in_space or not one.size or not other.size


@settings(max_examples=60, deadline=None)
@given(INTERVALS)
def test_the_arena_is_never_larger_than_all_values_side_by_side(intervals: list[Interval]) -> None:
    assert plan_arena(intervals).size <= sum(-(-interval.size // 64) * 64 for interval in intervals)
