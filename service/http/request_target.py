"""Requests that name the whole URL they are for (RFC 9112, 3.2.2), as those do that are sent to a proxy."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Receive, Scope, Send

_SCHEMES: Final = (b"http://", b"https://")


class RequestTarget:
    """Has every request say the path alone; the host is then the one that its URL names, whatever its header says."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        await self._app(_in_origin_form(scope), receive, send)


def _in_origin_form(scope: Scope) -> Scope:
    target: bytes = scope.get("raw_path") or b""
    scheme = next((each for each in _SCHEMES if target[: len(each)].lower() == each), None)
    if scheme is None:
        return scope
    host, slash, rest = target[len(scheme) :].partition(b"/")
    path = slash + rest or b"/"
    headers = [(b"host", host), *((name, value) for name, value in scope["headers"] if name != b"host")]
    return {**scope, "raw_path": path, "path": unquote_to_bytes(path).decode("utf-8", "replace"), "headers": headers}
