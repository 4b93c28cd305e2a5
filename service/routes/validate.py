"""POST /validate"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from service.answers import ValidationReport
from service.body import read_body

from .engine_of import EngineOf
from .graph_body import refusals, takes

router = APIRouter()


@router.post(
    "/validate",
    operation_id="validate",
    summary="Check a graph without compiling it",
    response_model=ValidationReport,
    responses=refusals(),
    openapi_extra=takes("ValidateBody"),
)
async def validate_graph(request: Request, engine: EngineOf) -> Response:
    """What was inferred about a valid graph; an invalid one is answered with its error."""
    answer = await engine.validate(await read_body(request))
    return Response(answer, headers={"Cache-Control": "no-store"}, media_type="application/json")
