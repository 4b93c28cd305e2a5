"""POST /validate"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from service.answers import ValidationReport
from service.body import read_body
from service.problems import documented
from tensorkiln.errors import (
    CrashedError,
    DeadlineExceededError,
    InvalidGraphError,
    LimitExceededError,
    LostWorkerError,
    RequestError,
    ResourceExhaustedError,
    TensorkilnError,
    UnavailableError,
    UnsupportedGraphError,
)

from .engine_of import EngineOf

router = APIRouter()


@router.post(
    "/validate",
    operation_id="validate",
    summary="Check a graph without compiling it",
    response_model=ValidationReport,
    responses=documented(
        RequestError,
        InvalidGraphError,
        UnsupportedGraphError,
        LimitExceededError,
        CrashedError,
        DeadlineExceededError,
        ResourceExhaustedError,
        UnavailableError,
        LostWorkerError,
        TensorkilnError,
        statuses={415: "`request.invalid`: the body is not declared as application/json."},
    ),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ValidateBody"}}},
        }
    },
)
async def validate_graph(request: Request, engine: EngineOf) -> Response:
    """What was inferred about a valid graph; an invalid one is answered with its error."""
    answer = await engine.validate(await read_body(request))
    return Response(answer, headers={"Cache-Control": "no-store"}, media_type="application/json")
