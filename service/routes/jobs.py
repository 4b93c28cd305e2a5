"""GET and DELETE /jobs/{id}, GET /jobs/{id}/events"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from service.engine.engine import Engine
from service.engine.job import Job
from service.fairness.shares import Held
from service.http.answers import JobAnswer, encode
from service.http.problems import LOOKUP_ERRORS
from service.store.job_records import JobRecord
from tensorkiln.errors import NotFoundError

from .engine_of import engine_of

JobId = Annotated[
    str,
    Path(
        pattern=r"^[0-9a-f]{32}$",
        description="The id of a job: `id` in the answer of `POST /compile` with `Prefer: respond-async`.",
        examples=["0f1e2d3c4b5a69788796a5b4c3d2e1f0"],
    ),
]

LastEventId = Annotated[
    str, Header(alias="Last-Event-ID", description="The last event that the client has seen.", max_length=64)
]

router = APIRouter(tags=["Compiling"])


@router.get(
    "/jobs/{job}",
    summary="The state of a job",
    response_model=JobAnswer,
    responses=LOOKUP_ERRORS,
)
async def job(job: JobId, request: Request) -> Response:
    """The state of a job, with its programs once it is done. A failed job is answered by 200 too, with its `error`."""
    engine = engine_of(request)
    return await _answer(engine, await engine.jobs.find(job))


@router.delete(
    "/jobs/{job}",
    summary="Cancel a job",
    response_model=JobAnswer,
    responses=LOOKUP_ERRORS,
)
async def cancel(job: JobId, request: Request) -> Response:
    """The job, cancelled unless it had ended before. Its compile is given up, unless others wait for the same."""
    engine = engine_of(request)
    return await _answer(engine, await engine.jobs.cancel(job))


async def _answer(engine: Engine, job: Job) -> Response:
    body = await job_body(engine, job)
    return Response(body, headers={"Cache-Control": "no-store"}, media_type="application/json")


async def listened_to(job: JobId, request: Request, response: Response, last: LastEventId = "") -> AsyncGenerator[str]:
    """Find the job, and count one more stream of events until it ends. The errors of `Shares.take` at the limit."""
    found = await engine_of(request).jobs.find(job)
    if found.is_over and not found.events_after(last):
        # Tells the EventSource of a browser not to reconnect (HTML, section 9.2).
        response.status_code = 204
    with Held(request.app.state.streams) as stream:
        stream.add(1)
        yield job


@router.get(
    "/jobs/{job}/events",
    summary="The events of a job, as a stream",
    response_class=EventSourceResponse,
    responses={
        204: {"description": "The job has ended, and there is no event after `Last-Event-ID`."},
        **LOOKUP_ERRORS,
    },
)
async def events(
    job: Annotated[str, Depends(listened_to)], request: Request, last: LastEventId = ""
) -> AsyncGenerator[ServerSentEvent]:
    """Server-sent events: `queued`, `started`, `stage` for each that begins, and `done` at the end of the stream."""
    async for event in engine_of(request).jobs.events(job, last):
        yield ServerSentEvent(id=event.id, event=event.kind, data=event.data)


async def job_body(engine: Engine, job: Job) -> bytes:
    """The body of the answer about a job.

    NotFoundError when it is done, but its programs are gone from the store or no longer trusted here.
    """
    if not job.is_over or job.record.answer is None:
        return encode(_shown(job))
    answer = await engine.blobs.get(job.record.answer)
    if answer is None:
        raise NotFoundError(f"The programs of job {job.record.id} are gone from the store; compile the graph again.")
    if not engine.notary.believes_answer(answer):
        raise NotFoundError(
            f"The programs of job {job.record.id} are no longer trusted, because of their key or of the isolation of "
            "their compile; compile the graph again."
        )
    return encode(job.record, answer)


def _shown(job: Job) -> JobRecord:
    """The record to show: a job whose end is not stored yet is running, and its queue time is the current one."""
    record = job.record
    if not job.is_over and record.has_ended:
        record = replace(record, state="running", error=None)
    return replace(record, queue_ms=job.queue_time.milliseconds) if job.task and record.state == "running" else record
