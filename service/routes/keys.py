"""GET /keys"""

from __future__ import annotations

from fastapi import APIRouter

from service.http.problems import documented
from tensorkiln.errors import TensorkilnError, UnavailableError
from tensorkiln.trust import KeySet

from .engine_of import EngineOf

router = APIRouter()


@router.get(
    "/keys",
    operation_id="keys",
    summary="The public keys that sign programs",
    response_model_exclude_none=True,
    responses=documented(UnavailableError, TensorkilnError),
)
async def keys(engine: EngineOf) -> KeySet:
    """JSON Web Keys of the curve Ed25519, the newest first, including expired and revoked ones."""
    return engine.keyring.published()
