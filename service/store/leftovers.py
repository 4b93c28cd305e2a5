"""Removes what killed services leave in a store: unfinished files, and old heartbeats and orders."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Final

from service import clock

from .evict import remove
from .inventory import items
from .job_records import OWNERS_FOLDER
from .location import ObjectStore, directory_of, explained

LEFT_S: Final = 3600.0
"""Seconds after which an unfinished file or a heartbeat was left by a killed process."""
ORDER_LEFT_S: Final = 86_400.0
"""Seconds after which an order of a farm was left by a lost service."""
READINESS: Final = "readiness/"
"""The folder of records that a service writes and removes to test the store."""
ORDERS_FOLDER: Final = "farm/"
MEMBERS_FOLDER: Final = "members/"
"""The heartbeats of the members of a farm."""
_ABANDONED_S: Final = {OWNERS_FOLDER: LEFT_S, READINESS: LEFT_S, MEMBERS_FOLDER: LEFT_S, ORDERS_FOLDER: ORDER_LEFT_S}


def unfinished(store: ObjectStore) -> list[str]:
    """Files that a killed writer left in a directory; an object store has none."""
    root = directory_of(store)
    if root is None:
        return []
    oldest = clock.time() - LEFT_S
    found: list[str] = []
    for path in root.rglob("*#*"):
        with suppress(FileNotFoundError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_mtime < oldest:
                found.append(str(path))
    return sorted(found)


def remove_unfinished(paths: list[str]) -> None:
    for path in paths:
        with explained("The store does not delete unfinished files"), suppress(FileNotFoundError):
            os.unlink(path)


async def abandoned(store: ObjectStore) -> int:
    """Remove orders and heartbeats of members that are gone, and return their number. A live member renews its own."""
    removed = 0
    for prefix, left_s in _ABANDONED_S.items():
        async for item in items(store, prefix):
            if item.used < clock.time() - left_s:
                removed += await remove(store, item)
    return removed
