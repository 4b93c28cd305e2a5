"""POST /validate, POST /translate and POST /explain: questions about a request that is not compiled."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response

from service.http.answers import Prewritten
from service.http.body import read_body, until_disconnect
from service.wire.answers import Explanation
from service.wire.body import Body

from .engine_of import engine_of, refusals, takes

router = APIRouter(tags=["Graphs"])


@router.post(
    "/explain",
    summary="Whether a compile would hit the store, and why not",
    response_model=Explanation,
    responses=refusals(),
    openapi_extra=takes("CompileBody"),
)
async def explain(request: Request) -> Response:
    """The components of every action digest of a compile request, whether it is stored, and what is nearest to it.

    Nothing is compiled.
    """
    return await _answered(request, engine_of(request).answers.explain)


@router.post(
    "/validate",
    summary="Check a graph without compiling it",
    response_model=Annotated[Any, Prewritten(".validation", "ValidationReport")],
    responses=refusals(),
    openapi_extra=takes("ValidateBody"),
)
async def validate(request: Request) -> Response:
    """What was inferred about a valid graph; an invalid one is answered with its error."""
    return await _answered(request, engine_of(request).answers.validate)


@router.post(
    "/translate",
    summary="Make a graph of a StableHLO module or of lines of the builder",
    response_model=Annotated[Any, Prewritten(".validation", "Translation")],
    responses=refusals(),
    openapi_extra=takes("TranslateBody"),
)
async def translate(request: Request) -> Response:
    """The graph of the module's main function, which is compiled like any other."""
    return await _answered(request, engine_of(request).answers.translate)


async def _answered(request: Request, ask: Callable[[Body], Coroutine[Any, Any, bytes]]) -> Response:
    body = await read_body(request)
    answer = await until_disconnect(request, ask(body), engine_of(request).ending)
    return Response(answer, headers={"Cache-Control": "no-store"}, media_type="application/json")
