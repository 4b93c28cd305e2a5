"""POST /compile"""

from __future__ import annotations

import time
from typing import Annotated, Final

from fastapi import APIRouter, Header, Request, Response

from service.answers import CompileAnswer
from service.body import read_body
from service.problems import documented
from service.settings import Settings
from tensorkiln.errors import (
    CrashedError,
    DeadlineExceededError,
    DiagnosticError,
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

HOOK_HEADER: Final = "Kiln-Test-Hook"

router = APIRouter()


@router.post(
    "/compile",
    operation_id="compile",
    summary="Compile a graph for one target or several",
    response_model=CompileAnswer,
    responses=documented(
        RequestError,
        InvalidGraphError,
        UnsupportedGraphError,
        LimitExceededError,
        DiagnosticError,
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
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/CompileBody"}}},
        }
    },
)
async def compile_graph(
    request: Request,
    engine: EngineOf,
    hook: Annotated[str | None, Header(alias=HOOK_HEADER, include_in_schema=False)] = None,
) -> Response:
    """One program per target, in the order of the request. The same request is compiled once."""
    begin = time.perf_counter()
    settings: Settings = request.app.state.settings
    if hook is not None and not settings.test_hooks:
        raise RequestError(f"{HOOK_HEADER} is for a service that runs with KILN_TEST_HOOKS=1.")
    answer = await engine.compile(await read_body(request), hook)
    milliseconds = (time.perf_counter() - begin) * 1e3
    headers = {"Server-Timing": f"total;dur={milliseconds:.2f}", "Cache-Control": "no-store"}
    return Response(answer, headers=headers, media_type="application/json")
