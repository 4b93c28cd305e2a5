"""Verify a signed token of an issuer, by keys that are fetched on demand, and map it to its caller."""

from __future__ import annotations

import asyncio
import json
import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, cast

import httpx2
import structlog
from cryptography.exceptions import UnsupportedAlgorithm
from joserfc import jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey, import_key

from service import clock
from tensorkiln.errors import ExpiredCredentialError, ForbiddenError, InvalidCredentialError, UnavailableError

from .caller import Caller
from .register import TENANT_PATTERN, Issuer, Rule, TenantRecord

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
MAX_TOKEN_CHARACTERS: Final = 16 << 10
MAX_LEFT_S: Final = 86_400
"""Most seconds until a token ends (RFC 7523, section 3, rule 4): a longer-lived one is a key that nobody can revoke."""
_SUBJECT: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,2048}")
"""A valid `sub`: text without control characters; that of a GitHub workflow may have more than OpenID Connect's 255."""


class Jwks:
    """The signing keys of `issuer` by their ids."""

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer
        self._keys: dict[str, PublicKey] = {}
        self._fetched_at = self._asked_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._is_silent = False

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
        return clock.monotonic() - self._fetched_at

    def _fetch_again(self) -> asyncio.Task[None]:
        """The task that fetches the keys: a new one, unless one is running or began in the last REFRESH_S."""
        now = clock.monotonic()
        if self._fetching is None or (self._fetching.done() and now - self._asked_at >= REFRESH_S):
            self._asked_at = now
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
        is_weak = entry.get("kty") == "RSA" and len(str(entry.get("n"))) * _BITS_A_CHARACTER < _MIN_RSA_BITS
        if is_weak or entry.get("kty") not in ("RSA", "EC", "OKP"):
            continue
        # A broken key does not affect the others.
        with suppress(*_UNUSABLE):
            key = import_key(cast("dict[str, Any]", entry))
            if isinstance(key, RSAKey | ECKey | OKPKey):
                keys[entry["kid"]] = key
    if not keys:
        raise ValueError("the key set has no key that verifies signatures")
    return keys


class Tokens:
    """Verifies tokens of `issuers`. `tenant` returns the record of a tenant."""

    def __init__(self, issuers: Sequence[Issuer], tenant: Callable[[str], TenantRecord]) -> None:
        self._issuers = {issuer.issuer: (issuer, Jwks(issuer)) for issuer in issuers}
        self._tenant = tenant

    async def caller(self, token: str) -> Caller:
        """The caller of `token`. AuthError with the reason, UnavailableError when the keys cannot be fetched."""
        header, unverified = _peek(token)
        issuer, jwks = self._issuers.get(str(unverified.get("iss")), (None, None))
        if issuer is None or jwks is None:
            raise InvalidCredentialError("The token is of an issuer that this service does not know.")
        if header.get("alg") not in issuer.algorithms:
            raise InvalidCredentialError(f"The token must be signed with {' or '.join(issuer.algorithms)}.")
        kid = header.get("kid")
        key = await jwks.key(kid) if isinstance(kid, str) else None
        if key is None:
            raise InvalidCredentialError("The token names no key of its issuer in `kid`.")
        try:
            claims = jwt.decode(token, key, algorithms=issuer.algorithms).claims
            jwt.JWTClaimsRegistry(
                now=lambda: int(time.time()),
                leeway=issuer.leeway_s,
                iss={"essential": True, "value": issuer.issuer},
                aud={"essential": True, "value": issuer.audience},
                sub={"essential": True},
                exp={"essential": True},
            ).validate(claims)
        except ExpiredTokenError:
            raise ExpiredCredentialError("The token has expired; ask its issuer for another.") from None
        except JoseError as error:
            raise InvalidCredentialError(f"The token cannot be verified: {error.description or error.error}.") from None
        # By the local clock: the token's own time of issue proves nothing. `exp` may be an integer beyond any float.
        if claims["exp"] > int(time.time()) + MAX_LEFT_S + issuer.leeway_s:
            raise InvalidCredentialError(
                f"The token ends more than {MAX_LEFT_S / 3600:g} h from now; ask its issuer for one that ends sooner."
            )
        if not isinstance(claims["sub"], str) or not _SUBJECT.fullmatch(claims["sub"]):
            raise InvalidCredentialError("The claim sub of the token is malformed.")
        rule = issuer.rule_for(claims)
        if rule is None:
            raise ForbiddenError(f"No rule of this service for {issuer.name} fits the claims of the token.")
        tenant = _tenant(issuer, rule, claims)
        namespace = "" if self._tenant(tenant).shared else tenant
        return Caller(f"{issuer.name}:{claims['sub']}", tenant, namespace, issuer.cap(claims, rule.scopes))


def _peek(token: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The unverified header and claims of a token, only for choosing its issuer and key."""
    parts = token.split(".")
    if len(token) > MAX_TOKEN_CHARACTERS or len(parts) != 3:
        raise InvalidCredentialError("The credential is neither an API key nor a signed token.")
    try:
        header, claims = (json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in parts[:2])
        if not isinstance(header, dict) or not isinstance(claims, dict):
            raise ValueError
    except (ValueError, RecursionError):
        raise InvalidCredentialError(
            "The token is not a JWT: its header and claims must be JSON objects in base64url."
        ) from None
    return cast("Mapping[str, Any]", header), cast("Mapping[str, Any]", claims)


def _tenant(issuer: Issuer, rule: Rule, claims: Mapping[str, Any]) -> str:
    if rule.tenant is not None:
        return rule.tenant
    value = claims.get(str(rule.tenant_claim))
    tenant = f"{issuer.name}/{value}"
    if not isinstance(value, str) or not all(re.fullmatch(TENANT_PATTERN, name) for name in (value, tenant)):
        raise ForbiddenError(f"The claim {rule.tenant_claim} of the token does not name a tenant.")
    return tenant
