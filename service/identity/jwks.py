"""The public keys of an issuer, fetched on demand and with a rate limit."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, cast

import httpx2
import structlog
from cryptography.exceptions import UnsupportedAlgorithm
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey, import_key

from tensorkiln.errors import UnavailableError

from .issuer import Issuer

FRESH_S: Final = 600.0
"""Keys older than this are fetched again before they are used, unless that takes longer than PATIENCE_S."""

STALE_S: Final = 86_400.0
"""Keys older than this are not used, even when the issuer cannot be reached."""

REFRESH_S: Final = 10.0
"""Least seconds between two fetches from an issuer, whatever key ids arrive in tokens."""

PATIENCE_S: Final = 1.0
"""Seconds that a token with a known key waits for newer keys; after a time-out none waits until a fetch succeeds."""

_TIMEOUT_S: Final = 5.0
# For the whole answer, however slowly it arrives.
_FETCH_S: Final = 10.0
_MAX_BYTES: Final = 1 << 20
_MAX_KEYS: Final = 100
_MIN_RSA_BITS: Final = 2048
# Bits per character of base64url, which encodes the modulus.
_BITS_A_CHARACTER: Final = 6
# joserfc lets errors of other libraries through, for an unknown curve for example.
_UNUSABLE: Final = (JoseError, ValueError, KeyError, TypeError, UnsupportedAlgorithm)

_log = structlog.get_logger()
PublicKey = RSAKey | ECKey | OKPKey


class Jwks:
    """The signing keys of `issuer` by their ids. `clock` counts seconds; `fetches` counts the fetches."""

    def __init__(self, issuer: Issuer, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._clock = clock
        self._keys: dict[str, PublicKey] = {}
        self._fetched_at = self._asked_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._is_silent = False
        self.fetches = 0

    async def key(self, kid: str) -> PublicKey | None:
        """The key with this id; None when the issuer has none. UnavailableError when its keys cannot be fetched."""
        is_usable = kid in self._keys and self._age <= STALE_S
        if not is_usable or self._age > FRESH_S:
            fetching = self._fetch_again()
            if not is_usable:
                await asyncio.wait({fetching})  # a cancelled caller does not cancel the shared fetch
            elif not self._is_silent:
                _, late = await asyncio.wait({fetching}, timeout=PATIENCE_S)
                self._is_silent |= bool(late)
        if self._age > STALE_S:
            raise UnavailableError(f"The keys of {self._issuer.issuer} cannot be fetched; send the request again.")
        return self._keys.get(kid)

    @property
    def _age(self) -> float:
        return self._clock() - self._fetched_at

    def _fetch_again(self) -> asyncio.Task[None]:
        """The task that fetches the keys: a new one, unless one is running or began in the last REFRESH_S."""
        now = self._clock()
        if self._fetching is None or (self._fetching.done() and now - self._asked_at >= REFRESH_S):
            self._asked_at = now
            self.fetches += 1
            self._fetching = asyncio.create_task(self._refresh(now))
        return self._fetching

    async def _refresh(self, now: float) -> None:
        try:
            async with asyncio.timeout(_FETCH_S):
                self._keys = await self._fetch()
        except Exception as error:
            self._is_silent = True
            _log.warning("the keys of an issuer cannot be fetched", issuer=self._issuer.issuer, reason=repr(error))
            return
        self._is_silent = False
        self._fetched_at = now

    async def _fetch(self) -> dict[str, PublicKey]:
        async with httpx2.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=False, trust_env=True) as http:
            url = self._issuer.jwks_url or await self._discover(http)
            return _signing_keys(await _get(http, url))

    async def _discover(self, http: httpx2.AsyncClient) -> str:
        url = f"{self._issuer.issuer.rstrip('/')}/.well-known/openid-configuration"
        description = await _get(http, url)
        if description.get("issuer") != self._issuer.issuer:
            raise ValueError(f"{url} describes the issuer {description.get('issuer')!r}")
        found = Issuer.model_validate({**dict(self._issuer), "jwks_url": description.get("jwks_uri")}).jwks_url
        if found is None:
            raise ValueError(f"{url} names no jwks_uri")
        return found


async def _get(http: httpx2.AsyncClient, url: str) -> Mapping[str, Any]:
    async with http.stream("GET", url) as response:
        if response.status_code != HTTPStatus.OK:
            raise ValueError(f"{url} answered {response.status_code}")
        content = bytearray()
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > _MAX_BYTES:
                raise ValueError(f"{url} sends more than {_MAX_BYTES} bytes")
    try:
        answer = json.loads(content)
    except RecursionError:
        raise ValueError(f"{url} sends JSON that is nested too deep") from None
    if not isinstance(answer, dict):
        raise ValueError(f"{url} sends no JSON object")
    return cast("Mapping[str, Any]", answer)


def _signing_keys(document: Mapping[str, Any]) -> dict[str, PublicKey]:
    keys: dict[str, PublicKey] = {}
    for entry in list(document["keys"])[:_MAX_KEYS] if isinstance(document.get("keys"), list) else []:
        if not isinstance(entry, dict) or not isinstance(entry.get("kid"), str) or entry.get("use", "sig") != "sig":
            continue
        if entry.get("kty") not in ("RSA", "EC", "OKP"):
            continue
        key = _usable(cast("dict[str, Any]", entry))
        if key is not None:
            keys[entry["kid"]] = key
    if not keys:
        raise ValueError("the key set has no key that verifies signatures")
    return keys


def _usable(entry: dict[str, Any]) -> PublicKey | None:
    """The key of an entry; None for a broken or weak one, which does not affect the others of its set."""
    if entry["kty"] == "RSA" and len(str(entry.get("n"))) * _BITS_A_CHARACTER < _MIN_RSA_BITS:
        return None
    with suppress(*_UNUSABLE):
        key = import_key(entry)
        return key if isinstance(key, RSAKey | ECKey | OKPKey) else None
    return None
