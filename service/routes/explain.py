"""POST /explain"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from service.http.body import read_body
from service.http.disconnect import until_disconnect
from service.wire.explanation import Explanation

from .engine_of import EngineOf
from .graph_body import refusals, takes

router = APIRouter()


@router.post(
    "/explain",
    operation_id="explain",
    summary="What a compile would find in the store, and why not more",
    response_model=Explanation,
    responses=refusals(),
    openapi_extra=takes("CompileBody"),
)
async def explain_request(request: Request, engine: EngineOf) -> Response:
    """The components of every action digest of a compile request, whether it is stored, and what is nearest to it.

    Nothing is compiled.
    """
    body = await read_body(request)
    answer = await until_disconnect(request, engine.questions.explain(body), engine.ending)
    return Response(answer, headers={"Cache-Control": "no-store"}, media_type="application/json")
