"""What a path asks of its caller. A path that is not here asks for `admin`."""

from __future__ import annotations

from typing import Final

from service.pages import PATHS

from .caller import Caller
from .scopes import Scope, forbidden

PUBLIC: Final = frozenset({"/healthz", "/readyz", "/capabilities", *PATHS})
"""For everybody: probes have no credential, and what the service can do is no secret. Pages hold no data."""

# For everybody who is known at all: what the interface is, and the public keys that programs are signed with. A tool of
# `/mcp` makes requests of its own, each of which asks for what it needs.
_KNOWN: Final = frozenset({"/docs", "/docs/oauth2-redirect", "/openapi.json", "/keys", "/whoami", "/mcp"})
DOCS_ASSETS: Final = "/docs/assets"
"""What `/docs` loads is the service's own: a script from elsewhere would see the keys that are typed into that page."""
_ANY: Final = frozenset[Scope]()
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


def check(caller: Caller, method: str, path: str) -> None:
    """ForbiddenError unless `caller` may do `method` at `path` at all; what comes of it there, the route decides."""
    needed = _needed(method, path)
    if needed and not needed & caller.scopes:
        raise forbidden(f"{method} {path}", needed, " or ")


def _needed(method: str, path: str) -> frozenset[Scope]:
    if path in _KNOWN or path.startswith(f"{DOCS_ASSETS}/"):
        return _ANY
    first = path.removeprefix("/").partition("/")[0]  # "*" and the like have none
    if method == "DELETE" and first == "jobs":
        return frozenset({Scope.COMPILE})
    return _ONE_OF.get(first, frozenset({Scope.ADMIN}))
