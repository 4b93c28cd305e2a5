"""Large answers that nobody fetches take no more memory than there is for them, and leave room to other tenants."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from service.http.middlewares import PIECE, RequestMemory
from service.identity.caller import EVERYTHING, Caller, acting_as
from tests.settled import settled

MOST = 16 * PIECE
SIZE = 7 * PIECE + 5
BODY = bytes(range(256)) * (SIZE // 256) + bytes(SIZE % 256)


async def application(scope: Any, receive: Any, send: Any) -> None:
    body = b"little" if scope["path"] == "/little" else BODY
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Client:
    """Asks for an answer, and fetches pieces of it when it is let to."""

    def __init__(self, app: RequestMemory, tenant: str, path: str = "/large", method: str = "GET") -> None:
        self.status = 0
        self.pieces: list[bytes] = []
        self.may_fetch = asyncio.Event()
        caller = Caller("key", tenant, tenant, EVERYTHING)
        with acting_as(caller):
            scope = {"type": "http", "method": method, "path": path, "headers": []}
            self.task = asyncio.create_task(app(scope, self._receive, self._send))

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    async def fetched(self) -> bytes:
        self.may_fetch.set()
        await self.task
        return self.body

    async def _receive(self) -> Any:
        await asyncio.Event().wait()

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        self.pieces.append(message["body"])
        if message.get("more_body"):
            await self.may_fetch.wait()


def with_outflow(test: Callable[[RequestMemory], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test(RequestMemory(application, MOST)))


def test_an_answer_is_handed_on_as_it_is_fetched() -> None:
    async def test(app: RequestMemory) -> None:
        client = Client(app, "a")
        await settled()
        assert [len(piece) for piece in client.pieces] == [PIECE]
        assert await client.fetched() == BODY
        assert max(map(len, client.pieces)) == PIECE

    with_outflow(test)


def test_a_tenant_that_fetches_nothing_is_refused_more_and_others_are_not() -> None:
    async def test(app: RequestMemory) -> None:
        stuck = [Client(app, "a") for _ in range(2)]
        await settled()
        refused, other, little = Client(app, "a"), Client(app, "b"), Client(app, "a", "/little")
        await settled()
        assert (refused.status, little.status, little.body) == (429, 200, b"little")
        problem = json.loads(refused.body)
        assert (problem["code"], problem["details"]["limit"]) == ("rate.limited", "fetched_bytes")
        # Who fetches nothing yet gets one, though that is more than there is.
        assert other.status == 200
        for client in (*stuck, other):
            assert await client.fetched() == BODY
        assert await Client(app, "a").fetched() == BODY

    with_outflow(test)


@pytest.mark.parametrize("leaves", [False, True])
def test_an_ended_response_is_no_longer_held(leaves: bool) -> None:
    async def test(app: RequestMemory) -> None:
        for _ in range(5):
            client = Client(app, "a")
            await settled()
            assert client.status == 200
            if leaves:
                client.task.cancel()
                await asyncio.wait([client.task])
            else:
                await client.fetched()

    with_outflow(test)


def test_the_head_of_an_answer_holds_nothing() -> None:
    async def test(app: RequestMemory) -> None:
        heads = [Client(app, "a", method="HEAD") for _ in range(8)]
        await settled()
        assert {head.status for head in heads} == {200}

    with_outflow(test)
