"""Turns in a lane, estimates and budgets."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.fairness.lane import Bounds, FairLane, Share
from service.fairness.queue_time import begin_queue_time
from service.fairness.turns import Allowance, Budget, Estimate, Gate, Turns
from service.identity.caller import LOCAL, acting_as
from service.identity.register import TenantRecord
from tensorkiln.errors import RateLimitedError, UnavailableError
from tests.clocks import HandClock, going_by

A, B = Share("a"), Share("b")


async def test_no_more_run_than_there_is_room_for_and_all_of_them_do() -> None:
    lane, running, most = FairLane(Bounds(3, 100)), 0, 0

    async def job(share: Share) -> None:
        nonlocal running, most
        async with lane.admit(share, 0.01):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1

    await asyncio.gather(*(job(A if number % 3 else B) for number in range(60)))
    assert most == 3


async def test_a_tenant_is_charged_what_its_turn_is_said_to_have_taken_though_it_is_over() -> None:
    spent: list[tuple[str, float]] = []
    lane = FairLane(Bounds(1, 1), lambda tenant, seconds: spent.append((tenant, seconds)))
    async with lane.admit(A, 1) as turn:
        turn.charge(2.5)
    async with lane.admit(B, 1) as other:
        await asyncio.sleep(0.02)
    turn.charge(0.5)
    assert spent == [("a", 2.5), ("a", 0.5)]
    assert other.cost_s is not None
    assert 0.02 <= other.cost_s < 1, "the seconds in the lane, which are nobody's processor seconds"


async def test_the_next_has_its_turn_when_one_is_ended_early() -> None:
    lane = FairLane(Bounds(1, 1))
    async with lane.admit(A, 1) as turn:
        turn.cost_s = 2.5
        turn.end()
        async with lane.admit(B, 1) as other:
            other.cost_s = 1.0
            assert lane.load().running == 1
        await asyncio.sleep(0.01)
    assert (turn.cost_s, other.cost_s) == (2.5, 1.0)
    assert lane.load().running == 0


async def test_a_full_lane_sheds_the_tenant_that_fills_it() -> None:
    lane, release = FairLane(Bounds(1, 4)), asyncio.Event()

    async def job(share: Share) -> str:
        async with lane.admit(share, 1):
            await release.wait()
        return share.tenant

    flood = [asyncio.create_task(job(A)) for _ in range(5)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimitedError) as refused:
        await job(A)
    assert refused.value.details == {"limit": "queue", "maximum": 4, "actual": 4, "retry_after_s": 4}
    newcomer = asyncio.create_task(job(B))
    await asyncio.sleep(0.01)
    with pytest.raises(RateLimitedError):
        await flood[-1]
    release.set()
    assert await newcomer == "b"
    assert await asyncio.gather(*flood[:-1]) == ["a"] * 4


async def test_without_tenants_a_full_lane_is_unavailable() -> None:
    lane = FairLane(Bounds(1, 0))
    async with lane.admit(Share(""), 1):
        with pytest.raises(UnavailableError, match="0 compiles wait already"):
            async with lane.admit(Share(""), 1):
                raise AssertionError


async def test_a_tenant_that_has_all_it_may_have_fills_the_queue_though_there_is_a_place_for_others() -> None:
    async def job(lane: FairLane) -> str:
        async with lane.admit(A, 1):
            return A.tenant

    lane = FairLane(Bounds(3, 1, tenant_width=2))
    async with lane.admit(A, 1), lane.admit(A, 1):
        waiting = asyncio.create_task(job(lane))
        await asyncio.sleep(0.01)
        assert lane.load().waiting == 1
        with pytest.raises(RateLimitedError) as refused:
            async with lane.admit(A, 1):
                raise AssertionError
        assert refused.value.details["limit"] == "queue"
        async with lane.admit(B, 1):
            assert lane.load().running == 3
        assert not waiting.done()
    assert await waiting == "a"


async def test_a_task_waits_no_longer_than_the_bound() -> None:
    lane = FairLane(Bounds(1, 10, age_s=0.05))
    async with lane.admit(A, 1):
        with pytest.raises(RateLimitedError) as refused:
            async with lane.admit(B, 1):
                raise AssertionError
        assert refused.value.details["limit"] == "queue_age_s"
    async with lane.admit(B, 1):
        pass


def test_running_tasks_of_a_request_do_not_age_its_waiting_ones() -> None:
    async def target(turns: Turns, seconds: float) -> None:
        async with turns.turn(1):
            await asyncio.sleep(seconds)

    async def run() -> None:
        turns = Turns(FairLane(Bounds(1, 10, age_s=0.15)), lambda _: TenantRecord())
        begin_queue_time()
        # Ten of them, which are at it for twice as long as anything may wait.
        await asyncio.gather(*(target(turns, 0.03) for _ in range(10)))

        async def other() -> None:
            begin_queue_time()
            with pytest.raises(UnavailableError, match="has waited"):
                await target(turns, 0.0)

        async with turns.turn(1):
            await asyncio.create_task(other())

    with acting_as(LOCAL):
        asyncio.run(run())


async def test_those_who_leave_take_no_turn_with_them() -> None:
    lane = FairLane(Bounds(1, 100))

    async def job() -> None:
        async with lane.admit(A, 0.01):
            await asyncio.sleep(0)

    for patience in range(12):
        tasks = [asyncio.create_task(job()) for _ in range(6)]
        for _ in range(patience):
            await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(1), lane.admit(B, 1):
        pass


def test_a_gate_counts_what_is_under_way() -> None:
    gate, allowance = Gate(), Allowance(in_flight=2)
    with gate.pass_through("a", allowance), gate.pass_through("a", allowance):
        with pytest.raises(RateLimitedError) as refused, gate.pass_through("a", allowance):
            raise AssertionError
        with gate.pass_through("b", allowance):
            pass
    assert refused.value.details == {"limit": "in_flight", "maximum": 2, "actual": 2, "retry_after_s": 1}
    with gate.pass_through("a", allowance):
        pass


def test_a_gate_closes_when_the_seconds_are_spent_and_opens_when_they_are_earned_back() -> None:
    gate, allowance, hand = Gate(), Allowance(cpu_s=10, window_s=60), HandClock(0.0)
    with going_by(hand):
        with gate.pass_through("a", allowance):
            gate.charge("a", 15)
        with pytest.raises(RateLimitedError) as refused, gate.pass_through("a", allowance):
            raise AssertionError
    assert refused.value.details == {"limit": "cpu_s", "maximum": 10, "actual": 15, "retry_after_s": 30, "window_s": 60}
    with going_by(hand), gate.pass_through("b", allowance):
        hand.at = 30.1
    with going_by(hand), gate.pass_through("a", allowance):
        pass


@given(
    maximum=st.floats(0.1, 100),
    window=st.floats(1, 3600),
    jobs=st.lists(st.tuples(st.floats(0, 60), st.floats(0, 10)), max_size=40),
)
def test_a_tenant_spends_at_most_its_budget_and_one_job_in_any_window(
    maximum: float, window: float, jobs: list[tuple[float, float]]
) -> None:
    budget, now = Budget(Allowance(cpu_s=maximum, window_s=window)), 0.0
    spent: list[tuple[float, float]] = []
    for pause, cost in jobs:
        now += pause
        if not budget.wait_s(now):
            budget.charge(cost, now)
            spent.append((now, cost))
    for begin, _ in spent:
        inside = sum(cost for at, cost in spent if begin <= at < begin + window)
        assert inside <= 2 * maximum + max(cost for _, cost in spent) + 1e-6


@given(seconds=st.floats(0.001, 100), sizes=st.lists(st.integers(0, 1 << 26), min_size=1, max_size=20))
def test_an_estimate_follows_what_is_learned(seconds: float, sizes: list[int]) -> None:
    estimate = Estimate()
    for size in sizes:
        estimate.learn(size, seconds)
    assert all(abs(estimate.seconds(size) - seconds) < 1e-9 for size in sizes)
    assert estimate.seconds(1 << 27) >= seconds * 0.99
    for _ in range(100):
        estimate.learn(sizes[0], 2 * seconds)
    assert abs(estimate.seconds(sizes[0]) - 2 * seconds) < 0.01 * seconds


async def test_a_wider_lane_starts_a_waiting_task_at_once() -> None:
    width, begun = 1, asyncio.Event()
    lane = FairLane(Bounds(2, 10), width=lambda: width)

    async def second() -> None:
        async with lane.admit(B, 0.01):
            begun.set()

    async with lane.admit(A, 0.01):
        waiting = asyncio.create_task(second())
        await asyncio.sleep(0)
        assert not begun.is_set()
        width = 2
        await asyncio.wait_for(begun.wait(), 30)
    await waiting
