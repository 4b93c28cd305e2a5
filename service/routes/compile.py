"""POST /compile and POST /jobs:batch"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from fastapi import APIRouter, Request, Response

from service.engine import submissions
from service.engine.engine import Engine
from service.engine.job import Job
from service.fairness.queue_time import begin_queue_time
from service.http.answers import CompileAnswer, JobAnswer, ended_at_once
from service.http.body import read_body, until_disconnect
from service.http.middlewares import held_by
from service.http.problems import respond
from service.settings import Settings
from service.wire.answers import Answer, Problem
from service.wire.body import Body
from tensorkiln.errors import (
    DiagnosticError,
    NotFoundError,
    RequestError,
    TensorkilnError,
    UnavailableError,
    UntrustedArtifactError,
    error_from_problem,
)

from .engine_of import engine_of, refusals, takes
from .jobs import job_body

MAX_WAIT_S: Final = 600
"""Most seconds that an answer is held back, whatever the client prefers and the time-outs allow."""

# Possessive quantifiers never backtrack: a malformed header costs no more than a valid one.
_ELEMENT: Final = re.compile(r'(?:[^,"]++|"(?:[^"\\]++|\\.)*+"?)++')
_ENTRY: Final = re.compile(r"""([\w!#$%&'*+.^`|~-]++)\s*+(?:=\s*+(?:"([^"]*+)"|([^\s;,"]*+))\s*+)?(?:;.*)?""")
# A number with more digits exceeds every maximum, and would be slow to parse.
_DIGITS: Final = 9
ATTEMPTS_HEADER: Final = "Kiln-Attempts"
"""The header with the number of attempts at the compile."""
_PREFER: Final = {
    "name": "Prefer",
    "description": "`respond-async`, `wait=SECONDS`, or both.",
    "schema": {"type": "string"},
}
_KEY: Final = {
    "name": submissions.HEADER,
    "description": "A request with the same key and body returns the same job.",
    "schema": {"type": "string", "pattern": submissions.PATTERN},
}
T = TypeVar("T")
router = APIRouter(tags=["Compiling"])


@dataclass(frozen=True, slots=True)
class Preference:
    """How long a client waits for its answer before it takes a job instead; `applied` is for Preference-Applied."""

    wait_s: int
    applied: str


def parse_prefer(headers: Sequence[str], most_s: int = MAX_WAIT_S) -> Preference | None:
    """Parse the Prefer headers of a request; None when they have neither preference.

    `respond-async` alone waits 0 seconds, `wait=N` waits N seconds, up to `most_s` and MAX_WAIT_S. The first statement
    of a preference counts, and unknown ones are ignored (RFC 7240).
    """
    stated: dict[str, str] = {}
    for entry in _ELEMENT.findall(",".join(headers)):
        match = _ENTRY.fullmatch(entry.strip())
        if match is not None:
            stated.setdefault(match[1].lower(), match[2] or match[3] or "")
    wait = stated.get("wait", "")
    waits = wait.isascii() and wait.isdigit()
    if not waits and "respond-async" not in stated:
        return None
    seconds = min(int(wait.lstrip("0")[:_DIGITS] or 0), most_s, MAX_WAIT_S) if waits else 0
    applied = ["respond-async"] if "respond-async" in stated else []
    return Preference(seconds, ", ".join([*applied, f"wait={seconds}"] if waits else applied))


@router.post(
    "/compile",
    name="compile",
    summary="Compile a graph for one target or several",
    response_model=CompileAnswer,
    responses={
        202: {"description": "A job that is not done yet.", "model": JobAnswer},
        **refusals(NotFoundError, DiagnosticError, UntrustedArtifactError),
    },
    openapi_extra=takes("CompileBody", _PREFER, _KEY),
)
async def compile_graph(request: Request) -> Response:
    """One program per target, in the order of the request. The same request is compiled once.

    If the client disconnects before the answer, the compile is cancelled, unless other callers wait for it.

    With Prefer, the request becomes a job: the answer is the job, with 200 if it is done within the given seconds, and
    otherwise with 202 and its Location. For a caller that may only read, the job is done immediately and not stored.
    """
    begin = time.perf_counter()
    engine, key = engine_of(request), _key_of(request)
    settings: Settings = request.app.state.settings
    preference = parse_prefer(request.headers.getlist("prefer"), int(settings.answer_s))
    body = await read_body(request)
    # A caller that may only read stores nothing, not even a job: its answer comes from the store at once.
    as_job = preference is not None and engine.tenancy.may_compile
    if preference is not None and as_job:
        job = await engine.submissions.submit(body, key)
        # The body is stored with the job: release its memory while the request waits.
        del body
        held_by(request.scope).give_back()
        return await _as_job(engine, preference, job)
    waited = begin_queue_time()
    again: list[Mapping[str, Any]] = []
    # A hit is answered here, without new tasks: after each task switch it would wait behind other requests.
    answer = await in_time(engine.answers.repeated(body), settings.answer_s)
    if answer is None:
        making = engine.answers.compile(body, lambda news: again.append(news) if "attempt" in news else None)
        answer = await in_time(until_disconnect(request, making, engine.ending), settings.answer_s)
    milliseconds = (time.perf_counter() - begin) * 1e3
    timing = f"queue;dur={waited.milliseconds:.2f}, total;dur={milliseconds:.2f}"
    headers = {"Server-Timing": timing, "Cache-Control": "no-store"}
    headers[ATTEMPTS_HEADER] = str(1 + len(again))
    content = answer if preference is None else ended_at_once(answer, milliseconds)
    return Response(content, headers=headers, media_type="application/json")


class HeaderError(RequestError):
    """A header is malformed."""

    status = 422


def _key_of(request: Request) -> str | None:
    """The idempotency key of the request; HeaderError when it is malformed."""
    key = request.headers.get(submissions.HEADER)
    if key is not None and re.fullmatch(submissions.PATTERN, key) is None:
        raise HeaderError(
            f"The header {submissions.HEADER} must be 1 to 64 letters, digits, `_` and `-`, not {key[:80]!r}.",
            pointers=[f"/header/{submissions.HEADER}"],
        )
    return key


async def in_time(answer: Awaitable[T], seconds: float) -> T:
    """Await the answer; UnavailableError after `seconds`, before a proxy gives up."""
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError:
        raise UnavailableError(
            f"The programs were not there within {seconds:g} s, their time in the queue included; send the request "
            "again, or make it a job with Prefer: respond-async.",
            details={"answer_s": seconds},
        ) from None


async def _as_job(engine: Engine, preference: Preference, job: Job) -> Response:
    job = await engine.jobs.end(job, preference.wait_s)
    where = f"/jobs/{job.record.id}"
    headers = {"Preference-Applied": preference.applied, "Cache-Control": "no-store", "Content-Location": where}
    if not job.is_over:
        headers = {**headers, "Location": where, "Retry-After": "1"}
    elif job.record.error is not None:
        return respond(error_from_problem(dict(job.record.error)), headers=headers)
    content = await job_body(engine, job)
    return Response(content, 200 if job.is_over else 202, headers, "application/json")


class BatchedJob(Answer):
    """The outcome of one request of a batch.

    A request that was accepted is a job, with its `id`, its `state`, and in `location` the path of `GET /jobs/{id}`.
    For a request that was refused, these are null, and `error` says why. `status` is what `POST /compile` would answer:
    202 for a job that is not done yet, 200 for one that is, or the status of the error.
    """

    status: int
    id: str | None = None
    location: str | None = None
    state: Literal["queued", "running", "done", "failed", "cancelled"] | None = None
    error: Problem | None = None


class BatchAnswer(Answer):
    """The outcome of each request, in the order of the requests."""

    jobs: tuple[BatchedJob, ...]


@router.post(
    "/jobs:batch",
    summary="Compile many graphs as jobs",
    response_model=BatchAnswer,
    responses=refusals(),
    openapi_extra=takes("BatchBody", _KEY),
)
async def batch(request: Request) -> Response:
    """A job for each request that is accepted; the others are refused one by one.

    Every job in the answer is accepted for good, also when the client leaves before it reads the answer.
    """
    engine, key = engine_of(request), _key_of(request)
    body = await read_body(request)
    wanted = await until_disconnect(request, engine.answers.split(body), engine.ending)
    del body  # its parts take as much memory
    keys = [None if key is None else f"{key}.{position}" for position in range(len(wanted))]
    answer = BatchAnswer(jobs=tuple([await _submitted(engine, *each) for each in zip(wanted, keys, strict=True)]))
    return Response(
        answer.model_dump_json(exclude_none=True), headers={"Cache-Control": "no-store"}, media_type="application/json"
    )


async def _submitted(engine: Engine, wanted: Body | TensorkilnError, key: str | None) -> BatchedJob:
    try:
        if isinstance(wanted, TensorkilnError):
            raise wanted
        job = await engine.submissions.submit(wanted, key=key)
    except TensorkilnError as error:
        return BatchedJob(status=error.status, error=Problem.model_validate(error.to_problem()))
    record = job.record
    status = 200 if job.is_over else 202
    return BatchedJob(status=status, id=record.id, location=f"/jobs/{record.id}", state=record.state)
