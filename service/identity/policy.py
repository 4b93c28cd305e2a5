"""The scopes that each path requires. A path that is not listed requires `admin`."""

from __future__ import annotations

from typing import Final

from .caller import Caller, Scope, forbidden

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


def check(caller: Caller, method: str, path: str) -> None:
    """Raise ForbiddenError unless `caller` may use `method` at `path`; the route may check more."""
    if path in _KNOWN or path.startswith(f"{DOCS_ASSETS}/"):
        return
    first = path.removeprefix("/").partition("/")[0]  # "*" and the like have none
    is_cancel = method == "DELETE" and first == "jobs"
    needed = frozenset({Scope.COMPILE}) if is_cancel else _ONE_OF.get(first, frozenset({Scope.ADMIN}))
    if not needed & caller.scopes:
        raise forbidden(f"{method} {path}", needed, " or ")
