"""What killed services leave in a store: files that nobody will finish, and signs of life that nobody will give up."""

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
"""A file or a sign of life that is older was left by a writer that was killed."""
ORDER_LEFT_S: Final = 86_400.0
"""So old an order of a farm is of a service that is no more."""
READINESS: Final = "readiness/"
"""What a service writes and removes, to see whether the store takes it."""
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
    """Remove what `unfinished` has found."""
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
