"""POST /mcp: the Model Context Protocol, without sessions.

Its tools make requests to this service, in process, with the credential and the address of the caller. They pass
through the whole application like any other request, so the permissions of the caller apply.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import unquote

from fastapi import APIRouter, Request, Response
from starlette.types import Message, Receive, Scope, Send

from service.http.body import read_body
from service.http.middlewares import held_by
from tensorkiln.errors import LimitExceededError, NotFoundError, UnavailableError, error_from_problem

MOST_ANSWER_BYTES: Final = 8 << 20
"""Most bytes of an answer, which is parsed in this process."""
_KEPT: Final = frozenset({b"authorization", b"host", b"x-forwarded-for", b"forwarded", b"traceparent", b"tracestate"})

_SCHEMES: Final = frozenset({"http", "https"})
PATH: Final = "/mcp"
MOST_BYTES: Final = 1 << 20
"""Most bytes of a message, which this process parses; `POST /compile`, for larger graphs, only reads the bytes."""
PARSED: Final = 31
"""Most bytes of memory per byte of parsed JSON, reached by an object with one member in 6 bytes."""
_LOADED: Final = ("mcp.server.streamable_http_manager", "tensorkiln.mcp.server", "tensorkiln.mcp.tools")
router = APIRouter()


class InnerRequests:
    """Makes requests on behalf of the caller of `request`. Raises the TensorkilnError of an error answer."""

    def __init__(self, request: Request) -> None:
        self._request = request

    @property
    def base_url(self) -> str | None:
        """The URL of the service as the caller wrote it, its scheme as a proxy states it; None on a Unix socket."""
        request = self._request
        host, server = request.headers.get("host"), request.scope.get("server")
        if not host or not server or server[1] is None:
            return None
        stated = request.headers.get("x-forwarded-proto")
        return f"{stated if stated in _SCHEMES else request.scope['scheme']}://{host}"

    async def get(self, path: str) -> bytes:
        """GET `path` and return the body of the answer."""
        return await self._send("GET", path, b"", [])

    async def post(self, path: str, body: bytes) -> bytes:
        """POST a JSON body to `path` and return the body of the answer."""
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        return await self._send("POST", path, body, headers)

    async def _send(self, method: str, path: str, body: bytes, headers: list[tuple[bytes, bytes]]) -> bytes:
        outer = self._request
        path, _, query = path.partition("?")
        kept = [(name, value) for name, value in outer.scope["headers"] if name in _KEPT]
        scope: dict[str, Any] = {
            **{key: outer.scope[key] for key in ("type", "asgi", "http_version", "server", "client", "scheme")},
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [*kept, *headers],
            "state": dict(outer.scope.get("state", {})),
        }
        unsent = [body]
        statuses: list[int] = []
        answer, length = bytearray(), 0

        async def receive() -> Message:
            if unsent:
                return {"type": "http.request", "body": unsent.pop(), "more_body": False}
            # After the body, only the disconnect of the outer caller can arrive.
            return await outer.receive()

        async def send(message: Message) -> None:
            nonlocal length
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            elif message["type"] == "http.response.body":
                length += len(message.get("body", b""))
                if length <= MOST_ANSWER_BYTES:
                    answer.extend(message.get("body", b""))

        await outer.app(scope, receive, send)
        if length > MOST_ANSWER_BYTES:
            raise LimitExceededError(
                f"The answer to {method} {path} is too long to be read here; ask for it at that route.",
                limit="answer_bytes",
                maximum=MOST_ANSWER_BYTES,
                actual=length,
            )
        if statuses not in ([200], [202]):
            problem: Any = None
            with suppress(ValueError):
                problem = json.loads(answer)
            if not isinstance(problem, dict):
                raise UnavailableError(f"The service answered {statuses} without a problem document.")
            raise error_from_problem(problem)
        return bytes(answer)


class Exchange(Response):
    """The answer of the MCP server to one message. Its own requests to the service are made as the caller."""

    def __init__(self, request: Request, message: bytes) -> None:
        super().__init__()
        self._request = request
        self._message = message

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from tensorkiln.mcp.server import make_server
        from tensorkiln.mcp.tools import TOOLS

        unread = [self._message]

        async def replayed() -> Message:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            return await receive()

        # The message may have come in a content coding, and is decoded.
        headers = [each for each in scope["headers"] if each[0] not in (b"content-encoding", b"content-length")]
        length = (b"content-length", str(len(self._message)).encode())
        server = make_server(TOOLS, InnerRequests(self._request))
        # No check of Host and Origin here: the guard has checked Host, and a foreign page cannot send JSON.
        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=MOST_BYTES
        )
        async with manager.run():
            await manager.handle_request({**scope, "headers": [*headers, length]}, replayed, send)


@router.post(PATH, include_in_schema=False)
async def exchange(request: Request) -> Response:
    """Answer one message of the protocol."""
    if find_spec("mcp") is None:
        raise NotFoundError("This service has no tools: its operator can install `tensorkiln-server[mcp]`.")
    message = (await read_body(request, MOST_BYTES)).content
    parsed = PARSED * len(message)
    request.app.state.memory_limit.require(parsed)
    held_by(request.scope).add(parsed)
    for module in _LOADED:  # slow, once per process
        await asyncio.to_thread(import_module, module)
    return Exchange(request, message)
