"""The trusted programs and artifacts of one client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NoReturn
from urllib.parse import quote

from pydantic import ValidationError

from ..artifacts import ArtifactCache
from ..cache import LocalCache
from ..errors import NotFoundError, UnavailableError
from ..immediate import Offload
from .policy import Policy
from .programs import Sources, TrustedPrograms
from .record import SignedRecord
from .service_keys import ServiceKeys

_RECORD_BYTES: Final = 64 << 20


def connect(
    authority: str, get: Callable[[str], Awaitable[bytes]], offload: Offload, policy: Policy, *, is_private: bool
) -> tuple[TrustedPrograms, ArtifactCache]:
    """The trusted programs and artifacts of the service `authority`; `get` returns its answer to a GET of a path.

    `offload` runs slow work. `is_private`: no other party can answer in place of the service. An offline client never
    calls `get`.
    """

    async def artifact(digest: str) -> bytes:
        if policy.offline:
            _refuse(f"The artifact {digest}", policy)
        return await get(f"/artifacts/{digest}")

    async def signed(digest: str) -> SignedRecord:
        answer = await get(f"/programs/{quote(digest, safe='')}/signature")
        try:
            return SignedRecord.model_validate_json(answer)
        except ValidationError as error:
            raise UnavailableError(f"The service's record of the program {digest} is invalid: {error}.") from None

    keys = ServiceKeys(
        authority,
        None if policy.offline else lambda: get("/keys"),
        policy.config,
        pins=policy.pins,
        is_private=is_private,
    )
    programs = ArtifactCache(artifact, policy.cache / "programs", disk_bytes=policy.cache_bytes, offload=offload)
    kept = LocalCache(policy.cache / "records", _RECORD_BYTES)
    sources = Sources(None if policy.offline else signed, programs, kept, offload)
    artifacts = ArtifactCache(artifact, policy.cache / "artifacts", disk_bytes=policy.cache_bytes, offload=offload)
    return TrustedPrograms(authority, keys, policy.minimum_isolation, sources), artifacts


def _refuse(what: str, policy: Policy) -> NoReturn:
    raise NotFoundError(f"{what} is not kept in {policy.cache}, and offline is set; load the program once without it.")
