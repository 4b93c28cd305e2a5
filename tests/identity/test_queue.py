"""The queue's promises, whatever arrives in whatever order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from service.fairness.lane import FairQueue, Share, Waiting

TENANTS = ("a", "b", "c")
WEIGHTS = {"a": 1.0, "b": 2.0, "c": 5.0}
costs = st.floats(0.01, 10)


@dataclass(frozen=True)
class Job:
    tenant: str
    true_cost: float


class Machine(RuleBasedStateMachine):
    """A server with room for two, and a model that knows what waits and what runs."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: FairQueue[Job] = FairQueue()
        self.waiting: list[Waiting[Job]] = []
        self.running: list[Waiting[Job]] = []
        self.passed_over: Counter[str] = Counter()

    @rule(tenant=st.sampled_from(TENANTS), estimate=costs, true_cost=costs)
    def arrive(self, tenant: str, estimate: float, true_cost: float) -> None:
        share = Share(tenant, WEIGHTS[tenant])
        self.waiting.append(self.queue.push(share, estimate, Job(tenant, true_cost)))

    @rule()
    def start(self) -> None:
        popped = self.queue.pop()
        assert (popped is None) == (not self.waiting), "what waits is started as long as there is any"
        if popped is None:
            return
        mine = [each for each in self.waiting if each.item.tenant == popped.item.tenant]
        assert popped is mine[0], "a tenant's own come in the order of their arrival"
        self.waiting.remove(popped)
        self.running.append(popped)

    @precondition(lambda self: self.running)
    @rule(place=st.integers(0, 10))
    def end(self, place: int) -> None:
        done = self.running.pop(place % len(self.running))
        self.queue.finish(done, done.item.true_cost)

    @precondition(lambda self: self.waiting)
    @rule(place=st.integers(0, 10))
    def give_up(self, place: int) -> None:
        gone = self.waiting.pop(place % len(self.waiting))
        self.queue.remove(gone)
        self.queue.remove(gone)

    @invariant()
    def counts(self) -> None:
        assert len(self.queue) == len(self.waiting)
        for tenant in TENANTS:
            expected = sum(each.cost for each in self.waiting if each.item.tenant == tenant)
            assert abs(self.queue.backlog(tenant) - expected) < 1e-9


TestMachine = Machine.TestCase


def serve(queue: FairQueue[Job]) -> Job | None:
    """One job at a time: started, and finished at its true cost."""
    waiting = queue.pop()
    if waiting is not None:
        queue.finish(waiting, waiting.item.true_cost)
    return waiting.item if waiting is not None else None


@given(
    weights=st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)),
    jobs=st.tuples(*[st.lists(st.tuples(costs, costs), min_size=20, max_size=60)] * 2),
)
def test_busy_tenants_get_what_their_weights_say_whatever_was_estimated(
    weights: tuple[float, float], jobs: tuple[list[tuple[float, float]], list[tuple[float, float]]]
) -> None:
    queue: FairQueue[Job] = FairQueue()
    for tenant, weight, mine in zip("ab", weights, jobs, strict=True):
        for estimate, true_cost in mine:
            queue.push(Share(tenant, weight), estimate, Job(tenant, true_cost))
    most = [max(true_cost for _, true_cost in mine) / weight for weight, mine in zip(weights, jobs, strict=True)]
    served = {"a": 0.0, "b": 0.0}
    while queue.backlog("a") and queue.backlog("b"):
        job = serve(queue)
        assert job is not None
        served[job.tenant] += job.true_cost / weights["ab".index(job.tenant)]
        assert abs(served["a"] - served["b"]) <= sum(most) + 1e-6


@given(flood=st.integers(1, 300), estimate=costs, cost=costs)
def test_one_who_comes_late_waits_for_no_more_than_one_of_those_who_flood(
    flood: int, estimate: float, cost: float
) -> None:
    queue: FairQueue[Job] = FairQueue()
    for _ in range(flood):
        queue.push(Share("a"), estimate, Job("a", cost))
    for _ in range(flood // 2):
        serve(queue)
    queue.push(Share("b"), estimate, Job("b", cost))
    order = [job.tenant for job in (serve(queue), serve(queue)) if job is not None]
    assert "b" in order


@given(idle=st.integers(1, 100))
def test_a_pause_saves_up_nothing(idle: int) -> None:
    queue: FairQueue[Job] = FairQueue()
    queue.push(Share("b"), 1, Job("b", 1))
    serve(queue)
    for _ in range(idle + 10):
        queue.push(Share("a"), 1, Job("a", 1))
    for _ in range(idle):
        serve(queue)
    for _ in range(10):
        queue.push(Share("b"), 1, Job("b", 1))
    order = [job.tenant for job in (serve(queue) for _ in range(10)) if job is not None]
    assert 4 <= order.count("b") <= 6


def test_a_tenant_has_no_more_running_than_it_may() -> None:
    queue: FairQueue[Job] = FairQueue(most_running=2)
    for tenant in "aaaab":
        queue.push(Share(tenant), 1, Job(tenant, 1))
    started = [queue.pop() for _ in range(4)]
    assert [each.item.tenant for each in started if each is not None] == ["a", "b", "a"]
    assert started[3] is None
    assert started[0] is not None
    queue.finish(started[0], 1)
    again = queue.pop()
    assert again is not None
    assert again.item.tenant == "a"


def test_the_tenant_over_its_weight_is_evicted_from_the_queue() -> None:
    queue: FairQueue[Job] = FairQueue()
    last = [queue.push(Share("a"), 1, Job("a", 1)) for _ in range(5)][-1]
    heavy = [queue.push(Share("b", 10.0), 1, Job("b", 1)) for _ in range(6)]
    assert queue.heaviest(Share("c"), 1) is last
    assert queue.heaviest(Share("b", 10.0), 1) is last
    assert queue.heaviest(Share("a"), 1) is None
    for each in heavy:
        queue.remove(each)
    assert queue.heaviest(Share("b", 10.0), 100) is None


def test_tenants_that_are_gone_are_forgotten() -> None:
    queue: FairQueue[Job] = FairQueue()
    for number in range(1000):
        queue.push(Share(str(number)), 1, Job(str(number), 1))
        serve(queue)
        serve(queue)
    assert len(queue._flows) < 10  # pyright: ignore[reportPrivateUsage]
