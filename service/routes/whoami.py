"""GET /whoami"""

from __future__ import annotations

from fastapi import APIRouter

from service.http.answers import CallerAnswer
from service.http.problems import documented
from service.identity.caller import caller
from tensorkiln.errors import TensorkilnError

router = APIRouter()


@router.get(
    "/whoami",
    operation_id="whoami",
    summary="The identity and the scopes of the caller",
    responses=documented(TensorkilnError),
)
async def whoami() -> CallerAnswer:
    """The name, the tenant and the scopes of the credential."""
    who = caller()
    return CallerAnswer(name=who.name, tenant=who.tenant, scopes=tuple(sorted(who.scopes)), is_local=who.is_local)
