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
"""Of a message, which this process parses: a larger graph is for `POST /compile`, which only reads its bytes."""

PARSED: Final = 31
"""Bytes that a parsed byte of JSON takes at most: an object with one member of 6."""

_LOADED: Final = ("mcp.server.streamable_http_manager", "tensorkiln.mcp.server", "tensorkiln.mcp.tools")

router = APIRouter()


class Exchange(Response):
    """The answer of the server of tools to one message. Each of its requests is made as if the caller had made it."""

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

        # It came in a coding perhaps, and is decoded.
        headers = [each for each in scope["headers"] if each[0] not in (b"content-encoding", b"content-length")]
        length = (b"content-length", str(len(self._message)).encode())
        server = make_server(TOOLS, InnerRequests(self._request))
        # Host and Origin were looked at before: a page of somebody else can send no JSON here.
        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=MOST_BYTES
        )
        async with manager.run():
            await manager.handle_request({**scope, "headers": [*headers, length]}, replayed, send)


@router.post(PATH, include_in_schema=False)
async def exchange(request: Request) -> Response:
    """One message of the protocol, and the answer to it."""
    if find_spec("mcp") is None:
        raise NotFoundError("This service has no tools: its operator can install `tensorkiln-server[mcp]`.")
    message = (await read_body(request, MOST_BYTES)).content
    parsed = PARSED * len(message)
    request.app.state.memory_limit.require(parsed)
    held_by(request.scope).add(parsed)
    for module in _LOADED:  # which takes a while, once in a process
        await asyncio.to_thread(import_module, module)
    return Exchange(request, message)
