"""Periodic maintenance of the store by a service: eviction, and the removal of leftovers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Final

import structlog

from service.process.periodic import Background, periodically
from service.settings import Settings
from service.store.evict import Bounds, abandoned, evict, remove_unfinished, unfinished
from service.store.location import open_store

_log = structlog.get_logger()
EVERY_S: Final = 600.0
UNBOUNDED_EVERY_S: Final = 1800.0
"""For a store without bounds: a round reads all records, and leftovers do no harm for a while."""


def bounds(max_mib: int, max_age_h: float) -> Bounds | None:
    """The bounds that the settings state, in MiB and hours; None when they state none."""
    if not max_mib and not max_age_h:
        return None
    return Bounds(max_mib << 20 if max_mib else None, max_age_h * 3600 if max_age_h else None)


@asynccontextmanager
async def upkeep(settings: Settings) -> AsyncGenerator[None]:
    """Keep the store within its bounds, if any, and free of leftovers of killed processes, during the block."""
    limits = bounds(settings.store_max_mib, settings.store_max_age_h)
    store = open_store(settings.store)

    async def once() -> None:
        evicted = await evict(store, limits or Bounds())
        files = await asyncio.to_thread(unfinished, store)
        await asyncio.to_thread(remove_unfinished, files)
        signs = await abandoned(store)
        if evicted.records or evicted.blobs or evicted.rights or files or signs:
            _log.info("the store was maintained", **asdict(evicted), unfinished=len(files), signs=signs)

    every_s = UNBOUNDED_EVERY_S if limits is None else EVERY_S
    keeping = Background()
    keeping.see_to(periodically("keep up the store", every_s, once, at_once=limits is not None))
    try:
        yield
    finally:
        await keeping.end()
