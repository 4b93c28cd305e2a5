"""POST /validate"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response

from service.http.body import read_body
from service.http.disconnect import until_disconnect
from service.http.prewritten import Prewritten

from .engine_of import EngineOf
from .graph_body import refusals, takes

router = APIRouter()


@router.post(
    "/validate",
    operation_id="validate",
    summary="Check a graph without compiling it",
    response_model=Annotated[Any, Prewritten(".validation", "ValidationReport")],
    responses=refusals(),
    openapi_extra=takes("ValidateBody"),
)
async def validate_graph(request: Request, engine: EngineOf) -> Response:
    """What was inferred about a valid graph; an invalid one is answered with its error."""
    body = await read_body(request)
    answer = await until_disconnect(request, engine.questions.validate(body), engine.ending)
    return Response(answer, headers={"Cache-Control": "no-store"}, media_type="application/json")
