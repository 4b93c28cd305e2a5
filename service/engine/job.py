"""A job of this service: what its state is, what has happened, and ways to wait for more."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from service import clock
from service.fairness.queue_time import QueueTime
from service.identity.caller import Caller
from service.identity.scopes import Scope
from service.store.job_records import Event, JobRecord

MAX_EVENTS: Final = 1000
_PLACE: Final = re.compile(r"([0-9]{1,9})\.(?:([0-9]{1,9})|done)")


class Job:
    """`record` is what the store has, or is about to have. `task` does the work.

    The attempt of the record also counts compiles that were begun again: it is shown, and bounds nothing.
    `is_cancelled` says that somebody wants it to end, `is_abandoned` that this service has lost hold of it.
    """

    def __init__(self, record: JobRecord) -> None:
        self.record = record
        self.task: asyncio.Task[None] | None = None
        self.is_over = record.has_ended
        self.is_cancelled = self.is_failing = self.is_abandoned = False
        self.changed = asyncio.Event()
        self.queue_time = QueueTime()
        self._accepted_at = clock.monotonic()
        if not record.events:
            self.add_event("queued", {"attempt": record.attempt})

    def is_for(self, who: Caller) -> bool:
        """Whether the caller may know of it, and have what comes of it.

        Of a job whose record was damaged nothing is known, and whoever has its id was given it.
        """
        made_by = self.record.caller
        if who.is_local or not made_by:
            return True
        # Whoever may not read what others of its tenant have had compiled may not have it by their jobs.
        may_read = who.may(Scope.CACHE_READ) or made_by.get("name") == who.name
        return may_read and (who.tenant, who.namespace) == (made_by.get("tenant"), made_by.get("namespace"))

    def add_event(self, kind: str, data: Mapping[str, Any], **changes: Any) -> None:
        """Add an event, and change fields of the record. Beyond MAX_EVENTS, stages are told no more."""
        if kind == "stage" and len(self.record.events) >= MAX_EVENTS:
            return
        self._adds(Event(f"{self.record.attempt}.{len(self.record.events) + 1}", kind, data), changes)

    def report(self, progress: Mapping[str, Any]) -> None:
        """What the work tells: a stage that begins, or that a compile is begun once more."""
        again = "attempt" in progress
        self.add_event("stage", progress, **({"attempt": self.record.attempt + 1} if again else {}))

    def start(self) -> None:
        """The work starts. It may have to wait for further turns."""
        queue_ms = self.queue_time.milliseconds
        self.add_event("started", {"queue_ms": queue_ms}, state="running", queue_ms=queue_ms)

    def finish(self, state: str, **changes: Any) -> None:
        """The work is over. It has to be stored before anybody is told: see `stored_end`."""
        queue_ms = run_ms = None
        if self.record.queue_ms is not None:
            queue_ms, total_ms = self._took(self.record.queue_ms)
            run_ms = max(round(total_ms - queue_ms, 3), 0.0)
        data = {"state": state, "queue_ms": queue_ms, "run_ms": run_ms}
        changes = {**changes, "state": state, "queue_ms": queue_ms, "run_ms": run_ms}
        self._adds(Event.last(self.record.attempt, data), changes)

    def _adds(self, event: Event, changes: Mapping[str, Any]) -> None:
        self.record = replace(self.record, events=(*self.record.events, event), **changes)
        self.notify()

    def _took(self, queue_ms: float) -> tuple[float, float]:
        """How long it waited and how long it took in all, in milliseconds. `queue_ms` is what is recorded of it."""
        if self.task is None:
            # Nobody here has worked on it.
            return queue_ms, (clock.time() - self.record.accepted) * 1e3
        total_ms = round((clock.monotonic() - self._accepted_at) * 1e3, 3)
        # Of several targets, some may wait for the work of others.
        return min(self.queue_time.milliseconds, total_ms), total_ms

    def fail(self, error: Mapping[str, Any]) -> None:
        """The job is to end by a defect of the service, whatever else it was about to come to."""
        self.is_failing = True
        self.record = self.record.failed(error)

    def abandon(self) -> None:
        """Nobody here works on it any more, though it has not ended."""
        self.is_abandoned = True
        self.notify()

    def stored_end(self, record: JobRecord) -> None:
        """The store has it: `record` is how the job has ended.

        Another service that ended it did not know of all that whoever listens here has heard of, which stays.
        """
        stored = record.before_end
        reached = max(stored, self.record.before_end, key=_reach)
        self.record = replace(record, events=(*reached, *record.events[len(stored) :]))
        self.is_over = True
        self.notify()

    def notify(self) -> None:
        """Let those who wait until it has `changed` look again."""
        self.changed.set()
        self.changed = asyncio.Event()

    async def end(self, seconds: float) -> bool:
        """Wait for the end, so long; whether it has come."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.is_over:
                    await self.changed.wait()
        return self.is_over

    def events_after(self, last: str) -> tuple[Event, ...]:
        """What may be told of the events after the one with the id `last`.

        All of this attempt when `last` is of another. The end is told when it is stored. Another service may have told
        `last`, and more than is known here.
        """
        events = self.record.events if self.is_over else self.record.before_end
        position = next((position for position, event in enumerate(events, 1) if event.id == last), None)
        if position is not None:
            return events[position:]
        return tuple(e for e in events if e.kind == "done" or _place(e.id) > _place(last))


def _place(identifier: str) -> tuple[int, float]:
    """Where an event is among those of its job, by its id; before all of them when it says nothing."""
    found = _PLACE.fullmatch(identifier)
    if found is None:
        return 0, 0
    return int(found[1]), math.inf if found[2] is None else int(found[2])


def _reach(events: tuple[Event, ...]) -> tuple[int, float]:
    return _place(events[-1].id) if events else (0, 0)


async def follow(job: Job, last: str, is_closing: asyncio.Event) -> AsyncGenerator[Event]:
    """The events of a job after `last`, until its end or the service's, or until it is left."""
    while True:
        # Taken before the look at the events, so that none is missed.
        changed, is_over = job.changed, job.is_over
        for event in job.events_after(last):
            last = event.id
            yield event
        if is_over or job.is_abandoned or is_closing.is_set():
            return
        await changed.wait()
