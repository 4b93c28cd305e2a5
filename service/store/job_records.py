"""The records of jobs: an accepted job stays in the store until it has ended, even if its service is lost.

`jobs/open` has the jobs to do, `jobs/ended` those that are over, `jobs/owners` the heartbeats of services, and
`jobs/claims` the claims by which exactly one service takes over an orphan. `jobs/progress` has the progress of jobs,
for other services; nothing depends on it. A job whose record cannot be read fails.
The records of the first two survive a power failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Final, Literal

import structlog
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from service import clock
from service.wire.answers import Phase, Problem
from tensorkiln.errors import UnavailableError
from tensorkiln.limits import MAX_BODY_BYTES
from tensorkiln.trust.record import Sha256

from .claims import Claims, Leases
from .records import DamagedRecord, Records

State = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED: Final[frozenset[State]] = frozenset({"done", "failed", "cancelled"})
ENDED_FOLDER: Final = "jobs/ended/"
OPEN_FOLDER: Final = "jobs/open/"
PROGRESS_FOLDER: Final = "jobs/progress/"
OWNERS_FOLDER: Final = "jobs/owners/"
_CLAIMS: Final = "jobs/claims"
_TRIES: Final = 5
_LAST_TIME: Final = 253_402_300_799.0
"""The end of the year 9999, in seconds since the epoch: no answer can state a later time."""

_log = structlog.get_logger()
_DONE: Final = "done"


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a job. `id` is the attempt and a count, as in `1.3`; that of the last event is `1.done`."""

    id: str
    kind: str
    data: Mapping[str, Any]

    @staticmethod
    def last(attempt: int, data: Mapping[str, Any]) -> Event:
        """The end of a job. Its id has no count: the service that ends a job may not know all of its events."""
        return Event(f"{attempt}.{_DONE}", _DONE, data)


def _tellable(events: tuple[Event, ...]) -> tuple[Event, ...]:
    for event in events:
        if event.kind == "stage":
            Phase.model_validate(event.data)
    return events


def _problem(error: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if error is not None:
        Problem.model_validate(error)
    return error


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job. `body` and `answer` are digests of blobs; `blobs` and `programs` (action digests) are in the answer.

    `accepted` is in seconds since the epoch, `attempt` counts how often a service took it over or its compile was
    restarted, `lost` the services that were lost while they worked on it. `owner` is the service that has it. `body`
    and `caller` are empty for a job whose record was damaged.
    """

    id: str
    body: str
    accepted: Annotated[float, Field(ge=0, le=_LAST_TIME)]
    caller: Mapping[str, Any]
    attempt: int = 1
    owner: str = ""
    state: State = "queued"
    queue_ms: float | None = None
    run_ms: float | None = None
    answer: str | None = None
    error: Annotated[Mapping[str, Any] | None, AfterValidator(_problem)] = None
    events: Annotated[tuple[Event, ...], AfterValidator(_tellable)] = ()
    trace: str = ""
    body_bytes: int = MAX_BODY_BYTES
    lost: int = 0
    blobs: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    @property
    def before_end(self) -> tuple[Event, ...]:
        """The events without the end of the job."""
        return tuple(event for event in self.events if event.kind != _DONE)

    def failed(self, error: Mapping[str, Any]) -> JobRecord:
        """The job as failed with `error`, a problem document, in place of any other outcome."""
        done = Event.last(self.attempt, {"state": "failed", "queue_ms": self.queue_ms, "run_ms": None})
        outcome = {"error": error, "answer": None, "blobs": (), "programs": (), "run_ms": None}
        return replace(self, state="failed", **outcome, events=(*self.before_end, done))


_JOB_RECORD: Final = TypeAdapter(JobRecord)
_PROGRAMS: Final = TypeAdapter(tuple[Sha256, ...])


def programs_of(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The programs that a stored record of a job names; empty when the record is malformed."""
    try:
        return _PROGRAMS.validate_python(record.get("programs", ()) if record is not None else ())
    except ValidationError:
        return ()


class JobRecords:
    """The job records in a store."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._claims = Claims(records)
        self._leases = Leases()
        self._beats = 0

    async def find(self, job: str) -> JobRecord | None:
        """The record of a job, ended or open."""
        ended = await self._read(_ended(job))
        if ended is not None:
            return ended
        record = await self._open(job)
        if record is None:
            return await self._read(_ended(job))  # it may have ended since
        progress = await self._read(f"{PROGRESS_FOLDER}{job}")
        return progress if progress is not None and progress.attempt >= record.attempt else record

    async def ended(self, job: str) -> JobRecord | None:
        """The record of an ended job; None while it has not ended, which takes no read."""
        path = _ended(job)
        return await self._read(path) if await self._records.in_use([path]) else None

    async def publish(self, record: JobRecord) -> None:
        """Write the progress of an open job, for other services."""
        await self._records.put(f"{PROGRESS_FOLDER}{record.id}", asdict(record))

    async def unpublish(self, job: str) -> None:
        await self._records.delete(f"{PROGRESS_FOLDER}{job}")

    async def write(self, record: JobRecord) -> None:
        """Write the record of an open job."""
        await self._records.put(f"{OPEN_FOLDER}{record.id}", asdict(record), durable=True)

    async def renew(self, record: JobRecord) -> JobRecord | None:
        """Write the record of an open job. If the job has ended, remove it, and return the record of the end."""
        await self.write(record)
        # A service that ended the job meanwhile may have removed its open record before this one was written.
        ended = await self.ended(record.id)
        if ended is not None:
            await self._close(record)
        return ended

    async def end(self, record: JobRecord) -> JobRecord:
        """Write the end of a job unless it has one; the record that counts."""
        for _ in range(_TRIES):
            is_new = await self._records.create(_ended(record.id), asdict(record), durable=True)
            standing = record if is_new else await self._read(_ended(record.id))
            if standing is not None:
                await self._close(record)
                return standing
            # It was damaged, and is not there any more.
        raise UnavailableError(f"The store neither writes nor reads the end of job {record.id}.")

    async def opened(self) -> list[str]:
        return await self._records.names(OPEN_FOLDER.removesuffix("/"))

    async def orphan(self, job: str, owner: str) -> JobRecord | None:
        """Take over an open job of a lost service, or one that `owner` has abandoned; None when that cannot be."""
        record = await self._open(job)
        if record is None:
            return None
        if await self._read(_ended(job)) is not None:
            await self._close(record)  # the service that ended it was lost before it could
            return None
        is_anothers = record.owner != owner and await self.is_alive(record.owner)
        if is_anothers or not await self._claim(record, owner):
            return None
        # Restarted compiles count as attempts too, and clients may have seen events with their numbers.
        progress = await self._read(f"{PROGRESS_FOLDER}{job}")
        attempt = 1 + max(record.attempt, 0 if progress is None else progress.attempt)
        lost = record.lost + (record.state == "running")
        taken = replace(record, owner=owner, attempt=attempt, lost=lost, state="queued", events=())
        return taken if await self.renew(taken) is None else None

    async def beat(self, owner: str) -> None:
        """Write a heartbeat of `owner`: other services leave its jobs alone for a lease."""
        self._beats += 1
        await self._records.put(f"{OWNERS_FOLDER}{owner}", {"beat": self._beats})

    async def release(self, owner: str, jobs: Iterable[str]) -> None:
        """Release the jobs of `owner` for other services. It does not count as lost over the started `jobs`."""
        await asyncio.gather(*(self._lay_down(job, owner) for job in jobs))
        await self._records.delete(f"{OWNERS_FOLDER}{owner}")

    async def owner(self, job: str) -> str:
        """The service that has an open job; empty for none."""
        record = await self._open(job)
        return record.owner if record is not None else ""

    async def is_alive(self, owner: str) -> bool:
        """Whether a service has sent a heartbeat within a lease, which begins when it is first asked for."""
        found = await self._records.get(f"{OWNERS_FOLDER}{owner}") if owner else None
        beat = found.get("beat") if found is not None else None
        if isinstance(beat, int):
            self._leases.heartbeat(owner, beat)
        else:
            self._leases.forget(owner)
        return self._leases.is_alive(owner)

    async def _lay_down(self, job: str, owner: str) -> None:
        record = await self._open(job)
        if record is not None and record.owner == owner and record.state == "running":
            await self.renew(replace(record, state="queued"))

    async def _read(self, path: str) -> JobRecord | None:
        """The record of a job at `path`; one that cannot be read is removed."""
        content = await self._records.get(path)
        try:
            return _JOB_RECORD.validate_python(content) if content is not None else None
        except ValidationError:
            _log.error("an unreadable record of a job was deleted", path=path)
        await self._records.delete(path)
        return None

    async def _open(self, job: str) -> JobRecord | None:
        """The record of an open job. One that cannot be read fails the job, unless its owner is known to be alive."""
        path = f"{OPEN_FOLDER}{job}"
        try:
            content = await self._records.intact(path)
            return _JOB_RECORD.validate_python(content) if content is not None else None
        except (DamagedRecord, ValidationError):
            _log.error("the record of an open job cannot be read", path=path)
        progress = await self._read(f"{PROGRESS_FOLDER}{job}")
        if progress is not None and await self.is_alive(progress.owner):
            return progress
        lost = UnavailableError("The record of this job was damaged in the store; send its request again.")
        await self.end((progress or JobRecord(job, "", clock.time(), {})).failed(lost.to_problem()))
        return None

    async def _claim(self, record: JobRecord, owner: str) -> bool:
        """Claim an orphan for `owner`; whether that succeeded. The claim of a service that was lost is replaced."""

        async def stands(claim: Mapping[str, Any]) -> bool:
            claimer = str(claim.get("owner", ""))
            # A claim of this owner is left from a take-over whose job record could not be written.
            return claimer != owner and await self.is_alive(claimer)

        path = f"{_CLAIMS}/{record.id}.{record.attempt}"
        return await self._claims.take(path, lambda: {"owner": owner}, stands) is None

    async def _close(self, record: JobRecord) -> None:
        await self._records.delete(f"{OPEN_FOLDER}{record.id}")
        await self._records.delete(f"{PROGRESS_FOLDER}{record.id}")
        if record.attempt > 1:
            for claim in await self._records.names(_CLAIMS):
                if claim.startswith(record.id):
                    await self._records.delete(f"{_CLAIMS}/{claim}")


def _ended(job: str) -> str:
    return f"{ENDED_FOLDER}{job[:2]}/{job}"
