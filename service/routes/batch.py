"""POST /jobs:batch"""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response

from service.engine.engine import Engine
from service.http.body import read_body
from service.http.disconnect import until_disconnect
from service.wire.answers import Answer, Problem
from service.wire.body import Body
from tensorkiln.errors import TensorkilnError

from .compile import IdempotencyKey
from .engine_of import EngineOf
from .graph_body import refusals, takes

router = APIRouter()


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
    operation_id="batch",
    summary="Compile many graphs as jobs",
    response_model=BatchAnswer,
    responses=refusals(),
    openapi_extra=takes("BatchBody"),
)
async def batch(request: Request, engine: EngineOf, key: IdempotencyKey = None) -> Response:
    """A job for each request that is accepted; the others are refused one by one.

    Every job in the answer is accepted for good, also when the client leaves before it reads the answer.
    """
    body = await read_body(request)
    wanted = await until_disconnect(request, engine.questions.split(body), engine.ending)
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
