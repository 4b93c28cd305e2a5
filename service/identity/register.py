"""The records of keys and tenants, as `register.json` has them, and of trusted issuers of tokens, as in `KILN_OIDC`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from .caller import READ_ONLY, Scope

TENANT_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,126}$"
TenantName = Annotated[str, Field(pattern=TENANT_PATTERN)]
Weight = Annotated[float, Field(gt=0, le=1000)]
InFlight = Annotated[int, Field(ge=0)]
CpuS = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Record(BaseModel):
    """Its values are frozen, and it takes no unknown field."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class KeyRecord(Record):
    """A key without its secret: `hash` is HMAC-SHA-256 of it, `last4` the end of its text, `name` its purpose."""

    id: str
    name: str
    hash: str
    last4: str
    tenant: TenantName
    scopes: frozenset[Scope]
    created: AwareDatetime
    expires: AwareDatetime | None = None
    revoked: AwareDatetime | None = None

    @property
    def holder(self) -> str:
        """The name of a caller with this key."""
        return f"key:{self.id}"

    def state(self, now: datetime) -> Literal["good", "expired", "revoked"]:
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "good"


class TenantRecord(Record):
    """The limits of a tenant: None is the default of the settings, 0 no limit; docs/identity.md describes them."""

    weight: Weight = 1.0
    shared: bool = False
    in_flight: InFlight | None = None
    cpu_s: CpuS | None = None


class Register(Record):
    """Every key that was ever made, and the tenants that differ from the defaults."""

    version: Literal[1] = 1
    keys: tuple[KeyRecord, ...] = ()
    tenants: dict[TenantName, TenantRecord] = Field(default_factory=dict[str, TenantRecord])


Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]
"""Asymmetric signature algorithms: only the holder of the private key can sign, and a verifier cannot."""

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


def _safe_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ValueError("must be an https URL: an attacker who changes the keys in transit could sign tokens")
    return url


Url = Annotated[str, BeforeValidator(_safe_url)]
Patterns = Annotated[tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]
Match = dict[str, Patterns]
"""Patterns by the name of a claim; a trailing `*` matches any rest. Every claim must match one of its patterns."""


class Rule(Record):
    """Tokens whose claims match `claims` are callers of `tenant` with `scopes`.

    With `tenant_claim` the tenant is `<issuer's name>/<the claim's value>`: no issuer can name another's tenant.
    """

    claims: Match = Field(default_factory=dict[str, tuple[str, ...]])
    tenant: TenantName | None = None
    tenant_claim: str | None = None
    scopes: frozenset[Scope] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_tenant(self) -> Rule:
        if (self.tenant is None) == (self.tenant_claim is None):
            raise ValueError("a rule has either tenant or tenant_claim")
        if self.tenant_claim is not None and not self.claims:
            raise ValueError("a rule with tenant_claim must have claims: anybody's token would make a tenant")
        return self


class Issuer(Record):
    """An issuer of tokens. The first of `rules` that matches decides; a token that matches none is refused.

    Tokens that match one of `read_only` get at most `cache:read`: anybody may open a pull request, for one. Without
    `jwks_url` the issuer's own description is fetched for it.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,30}$")
    issuer: Url
    audience: str = Field(min_length=1)
    jwks_url: Url | None = None
    algorithms: tuple[Algorithm, ...] = Field(default=("RS256", "ES256"), min_length=1)
    leeway_s: int = Field(default=60, ge=0, le=600)
    rules: tuple[Rule, ...] = Field(min_length=1)
    read_only: tuple[Match, ...] = (
        {"event_name": ("pull_request*", "workflow_run", "issue_comment")},
        {"ref": ("refs/pull/*",)},
    )

    def rule_for(self, claims: Mapping[str, Any]) -> Rule | None:
        """The first rule that matches a token with these claims; None when none does."""
        return next((rule for rule in self.rules if agrees(claims, rule.claims)), None)

    def cap(self, claims: Mapping[str, Any], scopes: frozenset[Scope]) -> frozenset[Scope]:
        """Limit `scopes` to READ_ONLY for a token whose claims match one of `read_only`."""
        return scopes & READ_ONLY if any(agrees(claims, match) for match in self.read_only) else scopes


def agrees(claims: Mapping[str, Any], match: Match) -> bool:
    """Whether every claim in `match` is present and matches one of its patterns."""
    return all(any(_fits(claims.get(name), pattern) for pattern in patterns) for name, patterns in match.items())


def _fits(value: object, pattern: str) -> bool:
    if isinstance(value, list):
        return any(_fits(entry, pattern) for entry in value if isinstance(entry, str))  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, str):
        return False
    return value.startswith(pattern[:-1]) if pattern.endswith("*") else value == pattern
