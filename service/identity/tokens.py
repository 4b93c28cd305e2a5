"""Verify a signed token of an issuer and map it to its caller."""

from __future__ import annotations

import json
import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from joserfc import jwt
from joserfc.errors import ExpiredTokenError, JoseError

from tensorkiln.errors import ExpiredCredentialError, ForbiddenError, InvalidCredentialError

from .caller import Caller
from .issuer import Issuer, Rule
from .jwks import Jwks
from .register import TENANT_PATTERN, TenantRecord

MAX_TOKEN_CHARACTERS: Final = 16 << 10
MAX_LEFT_S: Final = 86_400
"""Most seconds until a token ends: a longer-lived one would be a key that nobody can revoke. RFC 7523 (section 3, rule
4) allows refusing an `exp` that is unreasonably far away; tokens of workflows live minutes, or an hour.
"""
_HOUR_S: Final = 3600
_SUBJECT: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,2048}")
"""A valid `sub`: text without control characters. OpenID Connect Core (section 2) allows 255 characters, but the `sub`
of a GitHub workflow that is made of several claims may have more.
"""


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
            _registry(issuer).validate(claims)
        except ExpiredTokenError:
            raise ExpiredCredentialError("The token has expired; ask its issuer for another.") from None
        except JoseError as error:
            raise InvalidCredentialError(f"The token cannot be verified: {error.description or error.error}.") from None
        _require_an_end(issuer, claims["exp"])
        if not isinstance(claims["sub"], str) or not _SUBJECT.fullmatch(claims["sub"]):
            raise InvalidCredentialError("The claim sub of the token is malformed.")
        return self._caller_of(issuer, claims)

    def _caller_of(self, issuer: Issuer, claims: Mapping[str, Any]) -> Caller:
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
    except (ValueError, RecursionError):
        raise InvalidCredentialError(
            "The token is not a JWT: its header and claims must be JSON objects in base64url."
        ) from None
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise InvalidCredentialError("The token is not a JWT: its header and claims must be JSON objects in base64url.")
    return cast("Mapping[str, Any]", header), cast("Mapping[str, Any]", claims)


def _registry(issuer: Issuer) -> jwt.JWTClaimsRegistry:
    return jwt.JWTClaimsRegistry(
        now=lambda: int(time.time()),
        leeway=issuer.leeway_s,
        iss={"essential": True, "value": issuer.issuer},
        aud={"essential": True, "value": issuer.audience},
        sub={"essential": True},
        exp={"essential": True},
    )


def _require_an_end(issuer: Issuer, exp: float) -> None:
    # By the local clock: the token's own time of issue proves nothing. `exp` may be an integer beyond any float.
    if exp > int(time.time()) + MAX_LEFT_S + issuer.leeway_s:
        raise InvalidCredentialError(
            f"The token ends more than {MAX_LEFT_S / _HOUR_S:g} h from now; ask its issuer for one that ends sooner."
        )


def _tenant(issuer: Issuer, rule: Rule, claims: Mapping[str, Any]) -> str:
    if rule.tenant is not None:
        return rule.tenant
    value = claims.get(str(rule.tenant_claim))
    tenant = f"{issuer.name}/{value}"
    if not isinstance(value, str) or not all(re.fullmatch(TENANT_PATTERN, name) for name in (value, tenant)):
        raise ForbiddenError(f"The claim {rule.tenant_claim} of the token does not name a tenant.")
    return tenant
