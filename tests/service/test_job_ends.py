"""An accepted job ends, whatever breaks around its work: the turns, the store's records, the service itself."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from service.engine import job_work, jobs
from service.engine.job_work import MAX_ATTEMPTS
from service.engine.order import OnProgress
from service.fairness.lane import Turn
from service.fairness.turns import Fairness, Turns
from service.identity.caller import LOCAL, acting_as
from service.identity.register import TenantRecord
from service.settings import Settings
from service.store.job_records import JobRecord, JobRecords
from service.wire.body import Body
from tensorkiln.errors import DiagnosticError, LostWorkerError, NotFoundError, UnavailableError
from tests.service.house import BODY, LEFT, MEMORY, House, Told, ended, endless, failed_by

AWAY = UnavailableError("The store is away for a moment.")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(jobs, "BEAT_S", 0.05)
    monkeypatch.setattr(job_work, "_FIRST_PAUSE_S", 0.01)
    with capture_logs():  # to print a defect with all that is in its frames takes longer than the test
        yield


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


class Broken(Turns):
    """Turns that raise when somebody comes, or that are another's for as long as anybody waits."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncGenerator[Turn]:
        if self._error is None:
            await asyncio.Event().wait()
        raise self._error or AssertionError("nobody waits for ever")
        yield


class Refusing(JobRecords):
    """Raises at so many calls of this method."""

    def __init__(self, house: House, method: str, times: int, error: Exception = AWAY) -> None:
        super().__init__(house.records)
        self.left = times
        real = getattr(self, method)

        async def refuse(*arguments: Any) -> Any:
            if self.left:
                self.left -= 1
                raise error
            return await real(*arguments)

        setattr(self, method, refuse)


async def test_a_defect_outside_the_work_ends_the_job(house: House) -> None:
    house.turns = Broken(AssertionError("the lanes are not what they were"))
    assert failed_by(await house.done()) == "internal"


async def test_an_error_that_cannot_be_written_is_replaced_by_one_that_can(tmp_path: Path) -> None:
    house = House(tmp_path, Told(DiagnosticError("no", details={"what": object()})))
    assert failed_by(await house.done()) == "internal"


@pytest.mark.parametrize(
    ("work", "code", "calls"),
    [
        (Told(asyncio.CancelledError()), "infra.lost_worker", MAX_ATTEMPTS),
        (Told(b"answer", news={"stage": object()}), "infra.lost_worker", MAX_ATTEMPTS),
        (
            Told(LostWorkerError("Two.", details={"attempts": 2}), news={"stage": "retry", "attempt": 2}),
            "infra.lost_worker",
            3,
        ),
        (
            Told(UnavailableError("It is not taken."), news={"stage": "load", "target": 0}),
            "infra.unavailable",
            MAX_ATTEMPTS,
        ),
    ],
    ids=["given up by some part of the service", "cannot be told of", "loses workers", "compiles in vain"],
)
async def test_work_that_comes_to_nothing_is_tried_so_often_and_then_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Told, code: str, calls: int
) -> None:
    monkeypatch.setattr(job_work, "_PAUSE_AFTER_A_COMPILE_S", 0.0)
    assert failed_by(await House(tmp_path, work).done()) == code
    assert work.calls == calls


async def test_a_store_that_is_away_for_long_ends_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_work, "_MAX_PAUSE_S", 0.0)
    work = Told(*[AWAY] * 3 * MAX_ATTEMPTS, b"answer")
    assert (await House(tmp_path, work).done()).state == "done"


async def test_a_compile_that_was_begun_again_often_does_not_use_up_the_job(tmp_path: Path) -> None:
    told = Told(AWAY, b"answer")

    async def work(body: Body, on_progress: OnProgress) -> bytes:
        for attempt in range(2, MAX_ATTEMPTS + 2) if not told.calls else ():
            on_progress({"stage": "retry", "attempt": attempt})
        return await told(body, on_progress)

    record = await House(tmp_path, work).done()
    assert (record.state, record.attempt, told.calls) == ("done", MAX_ATTEMPTS + 1, 2)


async def test_a_job_whose_end_cannot_be_written_for_a_while_is_taken_up_again(house: House) -> None:
    house.job_records = Refusing(house, "end", 2, RuntimeError("a defect"))
    record = await house.done()
    assert (record.state, record.attempt) == ("done", 2)


async def test_a_request_that_leaves_while_its_job_is_recorded_leaves_no_open_job_behind(house: House) -> None:
    has_left = asyncio.Event()

    class Slow(JobRecords):
        looks = 0

        async def write(self, record: JobRecord) -> None:
            await super().write(record)
            await has_left.wait()

        async def opened(self) -> list[str]:
            self.looks += 1
            return await super().opened()

    stored = house.job_records
    house.job_records = slow = Slow(house.records)
    async with house.working() as jobs:
        accepting = asyncio.create_task(jobs.accept(BODY))
        while not (opened := await stored.opened()):
            await asyncio.sleep(0.01)
        # It is not taken from the hands of the one that accepts it, however often its service looks around.
        looks = slow.looks
        while slow.looks < looks + 3:
            await asyncio.sleep(0.01)
        accepting.cancel()
        with suppress(asyncio.CancelledError):
            await accepting
        has_left.set()
        assert (await ended(jobs, opened[0])).attempt == 2


async def test_a_job_is_cancelled_though_the_store_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.engine.jobs.CANCEL_S", 0.05)

    house = House(tmp_path, endless)
    house.job_records = refusing = Refusing(house, "end", 1_000_000)
    async with house.working() as jobs:
        job = await jobs.accept(BODY)
        with pytest.raises(UnavailableError, match="being cancelled, but its end"):
            await jobs.cancel(job.record.id)
        refusing.left = 0
        assert (await ended(jobs, job.record.id)).state == "cancelled"
        assert (await jobs.cancel(job.record.id)).record.state == "cancelled"
        assert jobs.open().total() == 0


DAMAGES: dict[str, dict[str, Any]] = {
    "no owner": {"owner": None},
    "no state": {"state": "asleep"},
    "no events": {"events": [{"kind": 1}]},
    "no attempt": {"attempt": "x"},
    "no time": {"accepted": 1e308},
    "no number": {"accepted": math.nan},
    "no problem": {"error": {"a": 1}},
    "no stage": {"events": [{"id": "1.1", "kind": "stage", "data": {}}]},
}


@pytest.mark.parametrize("damage", [None, *DAMAGES])
async def test_a_damaged_job_fails_and_holds_up_no_other(house: House, tmp_path: Path, damage: str | None) -> None:
    other = replace(LEFT, id="b" * 32, body=await house.blobs.put(b"{}"))
    await house.job_records.write(other)
    if damage is None:
        (tmp_path / "jobs" / "open" / LEFT.id).write_bytes(b"x" * 200)
    else:
        await house.records.put(f"jobs/open/{LEFT.id}", {**asdict(other), "id": LEFT.id, **DAMAGES[damage]})
    async with house.working() as jobs:
        lost = await ended(jobs, LEFT.id)
        assert failed_by(lost) == "infra.unavailable"
        assert [event.kind for event in lost.events][-1] == "done"
        assert (await ended(jobs, other.id)).state == "done"
        await house.none_is_open()


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_job_whose_end_is_damaged_is_told_of_no_more(house: House, tmp_path: Path, damage: str) -> None:
    path = f"jobs/ended/{LEFT.id[:2]}/{LEFT.id}"
    await house.records.put(path, {**asdict(LEFT), "state": "cancelled", **DAMAGES[damage]})
    with acting_as(LOCAL), pytest.raises(NotFoundError):
        await house.jobs().cancel(LEFT.id)
    assert not (tmp_path / path).exists()


CALLERS: list[dict[str, Any]] = [{}, {"name": "x"}, {**LOCAL.to_record(), "scopes": ["of a later version"]}]


@pytest.mark.parametrize(
    ("left", "code"), [(LEFT, "infra.unavailable"), *((replace(LEFT, caller=each), "internal") for each in CALLERS)]
)
async def test_a_job_whose_request_is_gone_or_whose_caller_nobody_can_read_fails(
    house: House, left: JobRecord, code: str
) -> None:
    await house.job_records.write(left)
    async with house.working() as jobs:
        lost = await ended(jobs, LEFT.id)
        assert failed_by(lost) == code
        assert lost.error
        assert lost.error["retryable"] is (code == "infra.unavailable")


async def test_a_field_of_a_later_version_does_not_keep_a_job_from_being_done(house: House) -> None:
    blob = await house.blobs.put(b"{}")
    await house.records.put(f"jobs/open/{LEFT.id}", {**asdict(LEFT), "body": blob, "colour": "red"})
    async with house.working() as jobs:
        assert (await ended(jobs, LEFT.id)).state == "done"


@pytest.mark.parametrize("lost", ["000", "999"])
async def test_a_job_that_the_store_does_not_give_holds_up_no_other(house: House, lost: str) -> None:
    class Giving(JobRecords):
        refused = 0

        async def orphan(self, job: str, owner: str) -> JobRecord | None:
            if job.startswith(lost):
                self.refused += 1
                raise UnavailableError("The store does not give this.")
            return await super().orphan(job, owner)

    house.job_records = giving = Giving(house.records)
    blob = await house.blobs.put(b"{}")
    left = [f"{number * 111:03}" + "a" * 29 for number in range(10)]
    for identifier in left:
        await house.job_records.write(replace(LEFT, id=identifier, body=blob))
    async with house.working() as jobs:
        for identifier in left:
            assert identifier.startswith(lost) or (await ended(jobs, identifier)).state == "done"
        assert giving.refused


async def test_a_service_that_could_not_write_that_it_took_a_job_takes_it_up_later(house: House) -> None:
    await house.job_records.write(replace(LEFT, body=await house.blobs.put(b"{}")))
    house.job_records = Refusing(house, "write", 1)
    async with house.working() as jobs:
        assert jobs.open().total() == 0
        assert (await ended(jobs, LEFT.id)).state == "done"


@pytest.mark.parametrize("state", ["queued", "running"])
async def test_services_that_stop_in_order_are_not_lost_over_a_job(tmp_path: Path, state: str) -> None:
    stopping = House(tmp_path, endless)
    if state == "queued":
        stopping.turns = Broken()
    identifier = ""
    for _ in range(MAX_ATTEMPTS + 1):
        async with stopping.working() as jobs, asyncio.timeout(20):
            job = await jobs.find(identifier) if identifier else await jobs.accept(BODY)
            identifier = job.record.id
            while (found := await stopping.job_records.find(identifier)) is None or found.state != state:
                await asyncio.sleep(0.01)
    async with House(tmp_path).working() as jobs:
        done = await ended(jobs, identifier)
    assert (done.state, done.attempt, done.lost) == ("done", MAX_ATTEMPTS + 2, 0)


@pytest.mark.parametrize(("state", "end"), [("queued", "done"), ("running", "failed")])
async def test_a_service_that_is_lost_counts_for_the_jobs_that_it_worked_on(house: House, state: str, end: str) -> None:
    left = replace(LEFT, body=await house.blobs.put(b"{}"), lost=MAX_ATTEMPTS - 1)
    await house.job_records.write(replace(left, state=state))
    async with house.working() as jobs:
        record = await ended(jobs, LEFT.id)
    assert record.state == end
    assert end == "done" or failed_by(record) == "infra.lost_worker"


async def test_jobs_wait_for_room_for_their_requests_and_keep_no_turn_meanwhile(tmp_path: Path) -> None:
    size, count = 400_000, 6
    under_way, at_once = 0, list[int]()
    may_end = asyncio.Event()

    async def work(body: Body, on_progress: OnProgress) -> bytes:
        nonlocal under_way
        under_way += 1
        at_once.append(under_way)
        await may_end.wait()
        under_way -= 1
        return b"answer"

    house = House(tmp_path, work)
    house.turns = Fairness(Settings(concurrency=count), lambda _: TenantRecord()).jobs
    async with house.working() as jobs:
        accepted = [await jobs.accept(Body(bytes([number]) * size, "0" * 64)) for number in range(count)]
        while under_way < MEMORY // size:
            await asyncio.sleep(0.01)
        assert house.turns.load().waiting == 0
        may_end.set()
        assert [(await ended(jobs, job.record.id)).state for job in accepted] == ["done"] * count
    assert max(at_once) == MEMORY // size
