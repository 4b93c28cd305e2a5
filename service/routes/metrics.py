"""GET /metrics"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from service.engine.figures import exposition
from service.http.problems import documented
from tensorkiln.errors import TensorkilnError

from .engine_of import EngineOf

PATH = "/metrics"

router = APIRouter()


@router.get(
    PATH,
    operation_id="metrics",
    summary="Figures for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **documented(TensorkilnError)},
)
async def metrics(request: Request, engine: EngineOf) -> Response:
    """Counters, histograms and gauges of this process, in the text format 0.0.4. No label holds what a user wrote.

    Of several workers one answers; the label `process` says which.
    """
    return Response(exposition(engine, request.app.state.place), media_type=CONTENT_TYPE_PLAIN_0_0_4)
