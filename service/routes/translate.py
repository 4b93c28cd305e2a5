"""POST /translate"""

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
    "/translate",
    operation_id="translate",
    summary="Make a graph of a StableHLO module",
    response_model=Annotated[Any, Prewritten(".translation", "Translation")],
    responses=refusals(),
    openapi_extra=takes("TranslateBody"),
)
async def translate_module(request: Request, engine: EngineOf) -> Response:
    """The graph of the module's main function, which is compiled like any other."""
    body = await read_body(request)
    answer = await until_disconnect(request, engine.questions.translate(body), engine.ending)
    return Response(answer, headers={"Cache-Control": "no-store"}, media_type="application/json")
