"""GET /capabilities"""

from __future__ import annotations

from fastapi import APIRouter, Request

from service.http.answers import Capabilities
from service.http.capabilities import Capable
from service.http.problems import documented
from tensorkiln.errors import TensorkilnError

from .engine_of import EngineOf

router = APIRouter()


@router.get(
    "/capabilities",
    operation_id="capabilities",
    summary="What this service can do",
    responses=documented(TensorkilnError),
)
async def capabilities(request: Request, engine: EngineOf) -> Capabilities:
    """Targets, node kinds, dtypes, limits, the level of isolation, and the compiler's build."""
    capable: Capable = request.app.state.capabilities
    return capable.described().model_copy(update={"keys": engine.keyring.published()})
