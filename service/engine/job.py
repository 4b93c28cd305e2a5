"""A job of this service: its state, its events, and ways to wait for changes."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from service import clock
from service.fairness.queue_time import QueueTime
from service.identity.caller import Caller, Scope
from service.store.job_records import Event, JobRecord

MAX_EVENTS: Final = 1000
_PLACE: Final = re.compile(r"([0-9]{1,9})\.(?:([0-9]{1,9})|done)")


class Job:
    """A job. `record` is its record as stored, or about to be stored; `task` does the work, None if none runs here."""

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
        """Whether the caller may see the job. One whose record was damaged has no caller: anyone with its id may."""
        made_by = self.record.caller
        if who.is_local or not made_by:
            return True
        # Without the scope to read the store, a caller may not read programs through jobs of others in its tenant.
        may_read = who.may(Scope.CACHE_READ) or made_by.get("name") == who.name
        return may_read and (who.tenant, who.namespace) == (made_by.get("tenant"), made_by.get("namespace"))

    def add_event(self, kind: str, data: Mapping[str, Any], **changes: Any) -> None:
        """Add an event, and change fields of the record. Stages beyond MAX_EVENTS are dropped."""
        if kind == "stage" and len(self.record.events) >= MAX_EVENTS:
            return
        self._adds(Event(f"{self.record.attempt}.{len(self.record.events) + 1}", kind, data), changes)

    def report(self, progress: Mapping[str, Any]) -> None:
        """Add progress of the work as an event: a stage that begins, or a compile that is restarted."""
        again = "attempt" in progress
        self.add_event("stage", progress, **({"attempt": self.record.attempt + 1} if again else {}))

    def start(self) -> None:
        """Record that the work starts. It may have to wait for further turns."""
        queue_ms = self.queue_time.milliseconds
        self.add_event("started", {"queue_ms": queue_ms}, state="running", queue_ms=queue_ms)

    def finish(self, state: str, **changes: Any) -> None:
        """Record the end of the work. Clients see it once it is stored: see `stored_end`."""
        queue_ms, run_ms = self.record.queue_ms, None
        if queue_ms is not None:
            total_ms = (clock.time() - self.record.accepted) * 1e3
            if self.task is not None:  # this service has worked on it
                total_ms = round((clock.monotonic() - self._accepted_at) * 1e3, 3)
                # Each target adds the waiting time of the flight that it joined: the sum may exceed the total.
                queue_ms = min(self.queue_time.milliseconds, total_ms)
            run_ms = max(round(total_ms - queue_ms, 3), 0.0)
        data = {"state": state, "queue_ms": queue_ms, "run_ms": run_ms}
        changes = {**changes, "state": state, "queue_ms": queue_ms, "run_ms": run_ms}
        self._adds(Event.last(self.record.attempt, data), changes)

    def _adds(self, event: Event, changes: Mapping[str, Any]) -> None:
        self.record = replace(self.record, events=(*self.record.events, event), **changes)
        self.notify()

    def fail(self, error: Mapping[str, Any]) -> None:
        """Make the job fail with `error`, which reports a defect of the service, in place of any other outcome."""
        self.is_failing = True
        self.record = self.record.failed(error)

    def abandon(self) -> None:
        """Record that this service stops working on the job before its end."""
        self.is_abandoned = True
        self.notify()

    def stored_end(self, record: JobRecord) -> None:
        """Take over the stored end of the job, and announce it. Events that were sent from here are kept."""
        stored = record.before_end
        reached = max(stored, self.record.before_end, key=lambda events: _place(events[-1].id) if events else (0, 0))
        self.record = replace(record, events=(*reached, *record.events[len(stored) :]))
        self.is_over = True
        self.notify()

    def notify(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    async def end(self, seconds: float) -> bool:
        """Wait for the end, up to `seconds`; whether the job is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.is_over:
                    await self.changed.wait()
        return self.is_over

    def events_after(self, last: str) -> tuple[Event, ...]:
        """The events after the one with the id `last`, which another service may have sent; the end once stored."""
        events = self.record.events if self.is_over else self.record.before_end
        position = next((position for position, event in enumerate(events, 1) if event.id == last), None)
        if position is not None:
            return events[position:]
        return tuple(e for e in events if e.kind == "done" or _place(e.id) > _place(last))


def _place(identifier: str) -> tuple[int, float]:
    """The attempt and the count in the id of an event, by which events are ordered; (0, 0) for an invalid id."""
    found = _PLACE.fullmatch(identifier)
    if found is None:
        return 0, 0
    return int(found[1]), math.inf if found[2] is None else int(found[2])
