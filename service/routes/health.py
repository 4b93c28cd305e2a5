"""GET /healthz and /readyz"""

from __future__ import annotations

from fastapi import APIRouter

from service.http.answers import Health
from service.http.problems import documented
from tensorkiln.errors import TensorkilnError, UnavailableError

from .engine_of import EngineOf

router = APIRouter()


@router.get(
    "/healthz", operation_id="healthz", summary="Whether the process answers", responses=documented(TensorkilnError)
)
async def healthz() -> Health:
    """Always ok: restart the process when this does not answer."""
    return Health()


@router.get(
    "/readyz",
    operation_id="readyz",
    summary="Whether compiles can be sent here",
    responses=documented(UnavailableError, TensorkilnError),
)
async def readyz(engine: EngineOf) -> Health:
    """Ok if a process was forked and the store written to within the last seconds, and no shutdown has started."""
    await engine.check()
    return Health()
