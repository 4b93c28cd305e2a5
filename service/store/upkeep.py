"""Eviction while the service runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from typing import Final

import structlog

from service.rounds import in_rounds
from service.settings import Settings

from .evict import Bounds, evict
from .location import open_store

_log = structlog.get_logger()
EVERY_S: Final = 600.0


def bounds(max_mib: int, max_age_h: float) -> Bounds | None:
    """The bounds that the settings state, in MiB and hours; None when they state none."""
    if not max_mib and not max_age_h:
        return None
    return Bounds(max_mib << 20 if max_mib else None, max_age_h * 3600 if max_age_h else None)


@asynccontextmanager
async def upkeep(settings: Settings, every_s: float = EVERY_S) -> AsyncGenerator[None]:
    """Inside the block the store is kept within its bounds, where it has any."""
    limits = bounds(settings.store_max_mib, settings.store_max_age_h)
    if limits is None:
        yield
        return
    store = open_store(settings.store_location)

    async def once() -> None:
        evicted = await evict(store, limits)
        if evicted.records or evicted.blobs or evicted.rights:
            _log.info("the store was kept within its bounds", **asdict(evicted))

    task = asyncio.create_task(in_rounds("keep the store within its bounds", every_s, once, at_once=True))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
