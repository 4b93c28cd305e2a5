"""GET /capabilities, GET /keys and GET /whoami: the service's abilities and keys, and the caller's identity."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request

from service.http.answers import CallerAnswer, Capabilities
from service.http.problems import documented
from service.identity.caller import caller
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
    """JSON Web Keys of the curve Ed25519, the newest first, those that have come to their end included."""
    return engine.keyring.published()


@router.get(
    "/capabilities",
    operation_id="capabilities",
    summary="What this service can do",
    responses=documented(TensorkilnError),
)
async def capabilities(request: Request, engine: EngineOf) -> Capabilities:
    """Targets, node kinds, dtypes, limits, the level of isolation, and the compiler's build."""
    described: Callable[[], Capabilities] = request.app.state.capabilities
    return described().model_copy(update={"keys": engine.keyring.published()})


@router.get(
    "/whoami",
    operation_id="whoami",
    summary="Who the service takes the caller for",
    responses=documented(TensorkilnError),
)
async def whoami() -> CallerAnswer:
    """The name and the tenant of the credential, and what it is good for."""
    who = caller()
    return CallerAnswer(name=who.name, tenant=who.tenant, scopes=tuple(sorted(who.scopes)), is_local=who.is_local)
