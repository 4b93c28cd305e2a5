"""POST /mcp: the Model Context Protocol, without sessions."""

from __future__ import annotations

import asyncio
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from fastapi import APIRouter, Request, Response
from starlette.types import Message, Receive, Scope, Send

from service.http.body import read_body
from service.http.inner_request import InnerRequests
from service.http.memory import held_by
from tensorkiln.errors import NotFoundError

PATH: Final = "/mcp"
MOST_BYTES: Final = 1 << 20
"""Most bytes of a message, which this process parses; `POST /compile`, for larger graphs, only reads the bytes."""

PARSED: Final = 31
"""Most bytes of memory per byte of parsed JSON, reached by an object with one member in 6 bytes."""

_LOADED: Final = ("mcp.server.streamable_http_manager", "tensorkiln.mcp.server", "tensorkiln.mcp.tools")

router = APIRouter()


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
