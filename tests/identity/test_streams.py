"""Streams of events: a tenant that opens many leaves some to others."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import Request, Response

from service.fairness.shares import Shares
from service.identity.caller import EVERYTHING, Caller, acting_as
from service.routes.jobs import listened_to
from tensorkiln.errors import RateLimitedError

STREAMS = 16


class Found:
    """Instead of the jobs of an engine: each is there."""

    async def find(self, job: str) -> Any:
        del job
        return SimpleNamespace(is_over=False)


async def test_a_tenant_that_listens_to_many_jobs_leaves_some_streams_to_others() -> None:
    shares = Shares(STREAMS, "streams", "streams of events")
    app = SimpleNamespace(state=SimpleNamespace(streams=shares, engine=SimpleNamespace(jobs=Found())))
    request = Request({"type": "http", "app": app})

    def stream(tenant: str) -> Any:
        with acting_as(Caller("key", tenant, tenant, EVERYTHING)):
            return asynccontextmanager(listened_to)("0" * 32, request, Response())

    async with AsyncExitStack() as streams:
        with acting_as(Caller("key", "a", "a", EVERYTHING)):
            for _ in range(12):
                await streams.enter_async_context(stream("a"))
            with pytest.raises(RateLimitedError) as caught:
                await streams.enter_async_context(stream("a"))
        assert caught.value.details == {"limit": "streams", "maximum": STREAMS, "actual": 12, "retry_after_s": 1}
        with acting_as(Caller("key", "b", "b", EVERYTHING)):
            await streams.enter_async_context(stream("b"))
    assert shares.held == 0
