"""Jobs as the store has them: an accepted job is there until it has ended, whatever becomes of the service.

`jobs/open` has what is to be done, `jobs/ended` what is over, `jobs/owners` the signs of life of services, and
`jobs/claims` who took up a job that somebody left, which one service does. `jobs/progress` has how far a job is, for
services that do not have it; nothing depends on it. A job whose record cannot be read has failed by that.
What is in the first two survives a power failure: the rest is found out anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Final, Literal

import structlog
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from service import clock
from service.lease import Leases
from service.wire.answers import Phase, Problem
from tensorkiln.errors import UnavailableError
from tensorkiln.limits import MAX_BODY_BYTES
from tensorkiln.trust.record import Sha256

from .claims import Claims
from .records import DamagedRecord, Records

State = Literal["queued", "running", "done", "failed", "cancelled"]
ENDED: Final[frozenset[State]] = frozenset({"done", "failed", "cancelled"})
MAX_OPEN: Final = 100_000
ENDED_FOLDER: Final = "jobs/ended/"
OPEN_FOLDER: Final = "jobs/open/"
PROGRESS_FOLDER: Final = "jobs/progress/"
OWNERS_FOLDER: Final = "jobs/owners/"
_CLAIMS: Final = "jobs/claims"
_TRIES: Final = 5
_LAST_TIME: Final = 253_402_300_799.0
"""The end of the year 9999, in seconds since the epoch: no answer can tell a later time."""

_log = structlog.get_logger()
_DONE: Final = "done"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a job. `id` is the attempt and a count, as in `1.3`; that of the last is `1.done`."""

    id: str
    kind: str
    data: Mapping[str, Any]

    @staticmethod
    def last(attempt: int, data: Mapping[str, Any]) -> Event:
        """The end of a job. Its id is no count: who ends a job may not know of all that has happened to it."""
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
    """A job. `body` is the digest of its request, `answer` that of its answer; both are blobs. `caller` is whose it is.

    `blobs` and `programs` are what the answer names, the latter by their action digests.
    `body_bytes` is how long the request is, at most.
    `accepted` is in seconds since the epoch, `attempt` counts how often somebody took it up or its compile was begun
    again, `lost` the services that were lost while they worked on it. `owner` is the one that has it, empty for none.
    `error` is a problem document. `trace` is the `traceparent` of the request. Of a job whose record was damaged, body
    and caller are empty.
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
        """Whether nothing happens to it any more."""
        return self.state in ENDED

    @property
    def before_end(self) -> tuple[Event, ...]:
        """The events but the last of a job that is over."""
        return tuple(event for event in self.events if event.kind != _DONE)

    def failed(self, error: Mapping[str, Any]) -> JobRecord:
        """The job once it has failed by `error`, a problem document, whatever else had come of it."""
        done = Event.last(self.attempt, {"state": "failed", "queue_ms": self.queue_ms, "run_ms": None})
        outcome = {"error": error, "answer": None, "blobs": (), "programs": (), "run_ms": None}
        return replace(self, state="failed", **outcome, events=(*self.before_end, done))


_JOB_RECORD: Final = TypeAdapter(JobRecord)
_PROGRAMS: Final = TypeAdapter(tuple[Sha256, ...])


def programs_of(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The programs that a stored record of a job names; none when it says something else than such records do."""
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
        """How a job has ended; None while it has not, for which nothing is read."""
        path = _ended(job)
        return await self._read(path) if await self._records.in_use([path]) else None

    async def publish(self, record: JobRecord) -> None:
        """Have other services know how far an open job is."""
        await self._records.put(f"{PROGRESS_FOLDER}{record.id}", asdict(record))

    async def unpublish(self, job: str) -> None:
        """A job is over: nobody needs to know how far it is."""
        await self._records.delete(f"{PROGRESS_FOLDER}{job}")

    async def write(self, record: JobRecord) -> None:
        """Keep an open job as it is now."""
        await self._records.put(f"{OPEN_FOLDER}{record.id}", asdict(record), durable=True)

    async def renew(self, record: JobRecord) -> JobRecord | None:
        """Keep an open job as it is now, unless it has ended: how it has, upon which it is open no more."""
        await self.write(record)
        # Who ends it meanwhile removes what was written only if that was there.
        ended = await self.ended(record.id)
        if ended is not None:
            await self._close(record)
        return ended

    async def end(self, record: JobRecord) -> JobRecord:
        """Keep how a job has ended, unless it has already; the record that stands."""
        for _ in range(_TRIES):
            is_new = await self._records.create(_ended(record.id), asdict(record), durable=True)
            standing = record if is_new else await self._read(_ended(record.id))
            if standing is not None:
                await self._close(record)
                return standing
            # It was damaged, and is not there any more.
        raise UnavailableError(f"The store neither writes nor reads the end of job {record.id}.")

    async def opened(self) -> list[str]:
        """The ids of the open jobs."""
        return await self._records.names(OPEN_FOLDER.removesuffix("/"), MAX_OPEN)

    async def orphan(self, job: str, owner: str) -> JobRecord | None:
        """An open job whose owner is no more, taken over by `owner`; None when there is nothing to take.

        A job that is `owner`'s already is one that it has lost hold of.
        """
        record = await self._open(job)
        if record is None:
            return None
        if await self._read(_ended(job)) is not None:
            await self._close(record)  # the service that ended it was gone before it could
            return None
        is_anothers = record.owner != owner and await self.is_alive(record.owner)
        if is_anothers or not await self._claim(record, owner):
            return None
        # A compile that was begun again has a number, too, and events that somebody may have seen by it.
        progress = await self._read(f"{PROGRESS_FOLDER}{job}")
        attempt = 1 + max(record.attempt, 0 if progress is None else progress.attempt)
        lost = record.lost + (record.state == "running")
        taken = replace(record, owner=owner, attempt=attempt, lost=lost, state="queued", events=())
        return taken if await self.renew(taken) is None else None

    async def beat(self, owner: str) -> None:
        """Other services leave the jobs of `owner` alone for a lease."""
        self._beats += 1
        await self._records.put(f"{OWNERS_FOLDER}{owner}", {"beat": self._beats})

    async def release(self, owner: str, jobs: Iterable[str]) -> None:
        """What `owner` still has is for others from now on; over `jobs`, which it has begun, it was not lost."""
        await asyncio.gather(*(self._lay_down(job, owner) for job in jobs))
        await self._records.delete(f"{OWNERS_FOLDER}{owner}")

    async def owner(self, job: str) -> str:
        """Who has an open job; empty for nobody."""
        record = await self._open(job)
        return record.owner if record is not None else ""

    async def is_alive(self, owner: str) -> bool:
        """Whether a service has said within a lease that it lives, as far as is known since it was first asked for."""
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
        """The record of an open job. One that cannot be read ends the job, unless its owner is known and lives."""
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
        """Whether `owner` is the one that takes up a job; a claim of one that died before it did so is replaced."""

        async def stands(claim: Mapping[str, Any]) -> bool:
            claimer = str(claim.get("owner", ""))
            # One's own is of a claim upon which it could not be written that one had the job.
            return claimer != owner and await self.is_alive(claimer)

        path = f"{_CLAIMS}/{record.id}.{record.attempt}"
        return await self._claims.take(path, lambda: {"owner": owner}, stands) is None

    async def _close(self, record: JobRecord) -> None:
        await self._records.delete(f"{OPEN_FOLDER}{record.id}")
        await self._records.delete(f"{PROGRESS_FOLDER}{record.id}")
        if record.attempt > 1:
            claims = await self._records.names(_CLAIMS, MAX_OPEN)
            for claim in claims:
                if claim.startswith(record.id):
                    await self._records.delete(f"{_CLAIMS}/{claim}")


def _ended(job: str) -> str:
    return f"{ENDED_FOLDER}{job[:2]}/{job}"
