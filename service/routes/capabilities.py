"""GET /capabilities"""

from __future__ import annotations

from fastapi import APIRouter, Request

from service.answers import Capabilities
from service.problems import documented
from tensorkiln.errors import TensorkilnError

router = APIRouter()


@router.get(
    "/capabilities",
    operation_id="capabilities",
    summary="What this service can do",
    responses=documented(TensorkilnError),
)
async def capabilities(request: Request) -> Capabilities:
    """Targets, node kinds, dtypes, limits, the level of isolation, and the compiler's build."""
    return request.app.state.capabilities
