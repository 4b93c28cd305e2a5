"""Streams of events begin a few at a time; all else goes on beside them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.openings import AT_ONCE, Openings

EVENTS, OTHER = "/jobs/a/events", "/healthz"


class Streams:
    """An application whose answers begin when they may, and end when they may."""

    def __init__(self) -> None:
        self.beginning = self.begun = 0
        self.may_begin = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.beginning += 1
        try:
            await self.may_begin.wait()
            if scope.get("fails"):
                raise ConnectionError
            await send({"type": "http.response.start"})
            await send({"type": "http.response.body"})
        finally:
            self.beginning -= 1
        self.begun += 1
        await self.may_end.wait()


async def nothing() -> Message:
    raise AssertionError


async def unheard(_message: Message) -> None:
    pass


def asked(app: Openings, path: str, **more: Any) -> asyncio.Task[None]:
    return asyncio.create_task(app({"type": "http", "path": path, **more}, nothing, unheard))


def test_few_streams_begin_at_a_time_and_many_go_on() -> None:
    async def run() -> None:
        streams = Streams()
        app = Openings(streams)
        tasks = [asked(app, EVENTS) for _ in range(5 * AT_ONCE)]
        await asyncio.sleep(0.01)
        assert streams.beginning == AT_ONCE
        tasks += [asked(app, OTHER) for _ in range(AT_ONCE)]
        await asyncio.sleep(0.01)
        assert streams.beginning == 2 * AT_ONCE
        streams.may_begin.set()
        await asyncio.sleep(0.01)
        assert streams.begun == len(tasks)
        streams.may_end.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())


@pytest.mark.parametrize("how", ["fails", "is cancelled"])
def test_a_stream_that_does_not_begin_keeps_no_place(how: str) -> None:
    async def run() -> None:
        streams = Streams()
        app = Openings(streams)
        tasks = [asked(app, EVENTS, fails=how == "fails") for _ in range(AT_ONCE)]
        await asyncio.sleep(0.01)
        last = asked(app, EVENTS)
        if how == "is cancelled":
            for task in tasks:
                task.cancel()
        streams.may_begin.set()
        streams.may_end.set()
        await last
        assert streams.begun == 1
        assert len([each for each in await asyncio.gather(*tasks, return_exceptions=True) if each]) == AT_ONCE

    asyncio.run(run())
