"""POST /translate"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response

from service.body import read_body
from service.presence import while_wanted
from service.written import Written

from .engine_of import EngineOf
from .graph_body import refusals, takes

router = APIRouter()


@router.post(
    "/translate",
    operation_id="translate",
    summary="Make a graph of a StableHLO module",
    response_model=Annotated[Any, Written("service.translation", "Translation")],
    responses=refusals(),
    openapi_extra=takes("TranslateBody"),
)
async def translate_module(request: Request, engine: EngineOf) -> Response:
    """The graph of the module's main function, which is compiled like any other."""
    body = await read_body(request)
    answer = await while_wanted(request, engine.translate(body), engine.ending)
    return Response(answer, headers={"Cache-Control": "no-store"}, media_type="application/json")
