"""Maps the credential of a request to its caller, and checks the scopes of the caller for the path.

A path that is not listed requires `admin`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

import structlog

from tensorkiln.errors import (
    ExpiredCredentialError,
    InvalidCredentialError,
    MissingCredentialError,
    RequestError,
)

from .caller import LOCAL, Caller, Scope, forbidden
from .keyring import PREFIX, Keyring, parse_key
from .register import Issuer

if TYPE_CHECKING:
    from .tokens import Tokens

_SCHEME: Final = "bearer"
_HOST: Final = re.compile(r"(?P<name>\[[0-9A-Fa-f:.%]+\]|[^:@\[\]/\\]+)(:[0-9]*)?")

START: Final = "/"
EXPLORE: Final = "/explore"
PAGES: Final = {
    START: "start.html",
    EXPLORE: "explore.html",
    **{f"/pages/{name}": name for name in ("pages.css", "api.js", "show.js", "start.js", "explore.js")},
}
"""The files in `service/pages` by their public paths: they hold no data, and a browser opens them before it has a key.

Their scripts call the service like any other client.
"""
PUBLIC: Final = frozenset({"/healthz", "/readyz", "/capabilities", *PAGES})
"""Paths that require no credential: probes have none, capabilities are no secret, and pages hold no data."""

# For every authenticated caller: the interface, and the public keys that sign programs. A tool of `/mcp` makes requests
# of its own, each of which is checked.
_KNOWN: Final = frozenset({"/docs", "/docs/oauth2-redirect", "/openapi.json", "/keys", "/whoami", "/mcp"})
DOCS_ASSETS: Final = "/docs/assets"
"""`/docs` loads only the service's own files: a foreign script could read the keys typed into that page."""
_WORK: Final = frozenset({Scope.COMPILE, Scope.CACHE_READ})
_ONE_OF: Final = {
    "translate": frozenset({Scope.COMPILE}),
    "validate": frozenset({Scope.COMPILE}),
    "compile": _WORK,
    "explain": _WORK,
    "jobs": _WORK,
    "jobs:batch": frozenset({Scope.COMPILE}),
    "programs": _WORK,
    "artifacts": _WORK,
}

_log = structlog.get_logger()


class MisdirectedError(RequestError):
    """The request is for another host."""

    status = 421


class Authenticator:
    """Identifies callers by keys and tokens, unless it `is_off`. UnavailableError when the keyring cannot be used."""

    def __init__(self, keyring: Keyring, issuers: Sequence[Issuer], *, is_off: bool) -> None:
        self.keyring = keyring
        self._is_off = is_off
        self._tokens: Tokens | None = None
        self._has_told = False
        if not self._is_off:
            # Imported here: a service without credentials does not need it.
            from .tokens import Tokens

            self._tokens = Tokens(issuers, self.keyring.tenant)
            self.keyring.require_secret()
        self._asks = not self._is_off and bool(issuers or self.keyring.register.keys)

    @property
    def asks(self) -> bool:
        """Whether a credential is required: from the first key or issuer on, and then permanently."""
        if not self._asks and not self._is_off:
            self._asks = bool(self.keyring.register.keys)
        return self._asks

    @property
    def has_no_keys(self) -> bool:
        """Whether credentials are ignored for want of keys; with `is_off`, a proxy may have looked at them."""
        return not self._is_off and not self.asks

    async def caller(self, authorization: str | None, peer: str | None, host: str | None = None) -> Caller:
        """Identify the caller by the header, the peer's address (None: a Unix socket) and the Host header.

        AuthError with the reason when that fails; MisdirectedError when no credential is required and the host is not
        this machine's own name (DNS rebinding).
        """
        if self._is_off or not self.asks:
            if not self._is_off and peer is not None and not is_loopback(peer):
                raise MissingCredentialError("This service has no keys yet: until then it serves its own machine only.")
            # The name or address in a header `Host` (RFC 9110, 7.2).
            named = _HOST.fullmatch(host) if peer is not None and host is not None else None
            if peer is not None and host is not None and not (named and is_loopback(named["name"].strip("[]").lower())):
                raise MisdirectedError(
                    f"A service that asks for no credential answers to localhost and 127.0.0.1, not to {host[:255]!r}; "
                    "make a key to have it answer to other names."
                )
            if authorization is not None and not self._has_told:
                self._has_told = True
                _log.warning("a credential was sent and ignored: this service requires none")
            return LOCAL
        if authorization is None:
            raise MissingCredentialError("Send an API key or a token: `Authorization: Bearer …`.")
        scheme, _, credential = authorization.strip().partition(" ")
        if scheme.lower() != _SCHEME or not credential.strip():
            raise InvalidCredentialError("The header must be `Authorization: Bearer …`, with an API key or a token.")
        credential = credential.strip()
        if credential.startswith(PREFIX):
            return self._holder(credential)
        assert self._tokens is not None
        return await self._tokens.caller(credential)

    def _holder(self, text: str) -> Caller:
        key = parse_key(text)
        if key is None:
            raise InvalidCredentialError("The API key is mistyped or cut off: its checksum is wrong.")
        record = self.keyring.verify(key)
        if record is None:
            raise InvalidCredentialError("There is no such API key.")
        state = record.state(datetime.now(UTC))
        if state == "revoked":
            raise InvalidCredentialError(f"The API key {key.id} was revoked.")
        if state == "expired":
            raise ExpiredCredentialError(f"The API key {key.id} has expired; ask the operator for another.")
        namespace = "" if self.keyring.tenant(record.tenant).shared else record.tenant
        return Caller(record.holder, record.tenant, namespace, record.scopes)


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Whether `host` is an address that only this machine can reach."""
    if host == "localhost":
        return True
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def check(caller: Caller, method: str, path: str) -> None:
    """Raise ForbiddenError unless `caller` may use `method` at `path`; the route may check more."""
    if path in _KNOWN or path.startswith(f"{DOCS_ASSETS}/"):
        return
    first = path.removeprefix("/").partition("/")[0]  # "*" and the like have none
    is_cancel = method == "DELETE" and first == "jobs"
    needed = frozenset({Scope.COMPILE}) if is_cancel else _ONE_OF.get(first, frozenset({Scope.ADMIN}))
    if not needed & caller.scopes:
        raise forbidden(f"{method} {path}", needed, " or ")
