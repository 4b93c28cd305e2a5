"""The answer about a job: the answer of its compile, with the job's state and times."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from secrets import token_hex
from typing import Final, Literal

from service.http.answers import CompileAnswer
from service.store.job_records import JobRecord
from service.wire.answers import Phase, Problem


class JobAnswer(CompileAnswer):
    """A compile that was accepted. `programs` are there when its `state` is `done`, `error` when it is `failed`.

    `attempt` counts how often its work was begun: it is more than 1 when a service, a worker or a compile was
    lost. `phases` are those of the service that has it now, or had it last, in the order in which they began.
    `queue_ms` is the time in which it waited for its turns, here and in a farm, `run_ms` all other time that it took,
    both null while they are not known.
    """

    id: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    accepted: datetime
    attempt: int
    phases: tuple[Phase, ...]
    queue_ms: float | None
    run_ms: float | None
    error: Problem | None


NOTHING: Final = CompileAnswer(programs=()).model_dump_json().encode()
"""The answer of a compile without programs."""


def ended_at_once(answer: bytes, run_ms: float) -> bytes:
    """The body of a job that ends with its request and is not stored."""
    record = JobRecord(token_hex(16), "", time.time(), {}, state="done", queue_ms=0.0, run_ms=round(run_ms, 3))
    return encode(record, answer)


def encode(record: JobRecord, answer: bytes = NOTHING) -> bytes:
    """Encode the answer about a job. `answer` is that of the compile, a JSON object; it is not parsed."""
    facts = JobAnswer(
        programs=(),
        id=record.id,
        state=record.state,
        accepted=datetime.fromtimestamp(record.accepted, UTC),
        attempt=record.attempt,
        phases=tuple(Phase.model_validate(event.data) for event in record.events if event.kind == "stage"),
        queue_ms=record.queue_ms,
        run_ms=record.run_ms,
        error=Problem.model_validate(record.error) if record.error is not None else None,
    )
    return facts.model_dump_json(exclude=set(CompileAnswer.model_fields)).encode()[:-1] + b"," + answer[1:]
