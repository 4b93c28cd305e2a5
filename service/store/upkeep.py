"""Eviction while the service runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from typing import Final, NoReturn

import structlog

from service.settings import Settings
from tensorkiln.errors import UnavailableError

from .evict import Bounds, evict
from .location import ObjectStore, open_store

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
    task = asyncio.create_task(keep_within(open_store(settings.store_location), limits, every_s))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def keep_within(store: ObjectStore, limits: Bounds, every_s: float = EVERY_S) -> NoReturn:
    """Evict now and then, until cancelled. A store that fails is tried again."""
    while True:
        try:
            evicted = await evict(store, limits)
        except UnavailableError as error:
            _log.warning("the store could not be kept within its bounds", reason=error.message)
        else:
            if evicted.records or evicted.blobs or evicted.rights:
                _log.info("the store was kept within its bounds", **asdict(evicted))
        await asyncio.sleep(every_s)
