"""Keeps a store within its bounds: evicts the least recently used first, without breaking what stays.

And removes what killed services leave there: unfinished files, and old heartbeats and orders. A service does both
periodically.
"""

from __future__ import annotations

import asyncio
import math
import os
import stat
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Final

import structlog

from service import clock
from service.process.periodic import Background, periodically

from .attempts import FOLDER as CRASHES
from .attempts import REMEMBERED_S
from .blobs import FRESH_S
from .disk import Item
from .inventory import BLOBS, PROGRAMS, Inventory, items, take_inventory, target_of
from .job_records import ENDED_FOLDER, OWNERS_FOLDER
from .location import ObjectStore, explained
from .programs import path_of
from .records import Records

GRACE_S: Final = 2 * FRESH_S
"""Seconds for which a new blob is kept: it is written before the record that names it."""
ENDED_KEPT_S: Final = 86400.0
"""Seconds for which an ended job is kept for its caller, whatever the bounds are."""
LEFT_S: Final = 3600.0
"""Seconds after which an unfinished file or a heartbeat was left by a killed process."""
ORDER_LEFT_S: Final = 86_400.0
"""Seconds after which an order of a farm was left by a lost service."""
READINESS: Final = "readiness/"
"""The folder of records that a service writes and removes to test the store."""
ORDERS_FOLDER: Final = "farm/"
MEMBERS_FOLDER: Final = "members/"
"""The heartbeats of the members of a farm."""
EVERY_S: Final = 600.0
UNBOUNDED_EVERY_S: Final = 1800.0
"""For a store without bounds: a round reads all records, and leftovers do no harm for a while."""
_ABANDONED_S: Final = {OWNERS_FOLDER: LEFT_S, READINESS: LEFT_S, MEMBERS_FOLDER: LEFT_S, ORDERS_FOLDER: ORDER_LEFT_S}

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bytes that a store may hold, and seconds that a record may be unused."""

    max_bytes: float = math.inf
    max_age_s: float = math.inf

    @staticmethod
    def of(max_mib: int, max_age_h: float) -> Bounds:
        """The bounds that settings state, in MiB and hours; 0 is no bound."""
        return Bounds(max_mib << 20 or math.inf, max_age_h * 3600 or math.inf)


@dataclass(frozen=True, slots=True)
class Evicted:
    """How many records, blobs and rights to read were removed, their bytes, and the bytes that the store holds now."""

    records: int
    blobs: int
    rights: int
    freed_bytes: int
    held_bytes: int


async def evict(store: ObjectStore, bounds: Bounds, *, grace_s: float = GRACE_S) -> Evicted:
    """Remove records that are too old, then the oldest until the rest fits, then the blobs that no record names.

    An answer or an ended job is removed before its programs, a record before the blobs that only it needs, and a right
    to read after its target. Objects that are used or written meanwhile stay. docs/trust.md has the bounds.
    """
    inventory = await take_inventory(store)
    now = clock.time()
    chosen = _chosen(inventory, bounds, now)
    gone = {path for path in chosen if await remove(store, inventory.records[path])}
    staying = {digest for path, needed in inventory.needs.items() if path not in gone for digest in needed}
    staying |= inventory.others
    forgotten = [
        item for digest, item in inventory.blobs.items() if digest not in staying and now - item.used > grace_s
    ]
    removed = [item for item in forgotten if await remove(store, item)]
    staying |= inventory.blobs.keys() - {item.path.rpartition("/")[2] for item in removed}
    staying |= {path.rpartition("/")[2] for path in inventory.records.keys() - gone if path.startswith(PROGRAMS)}
    idle = [
        item for path, item in inventory.rights.items() if target_of(path) not in staying and now - item.used > grace_s
    ]
    rights = [item for item in idle if await _withdraw(store, item)]
    freed = sum(item.size for item in (*removed, *rights, *(inventory.records[path] for path in gone)))
    return Evicted(len(gone), len(removed), len(rights), freed, inventory.size - freed)


def _chosen(inventory: Inventory, bounds: Bounds, now: float) -> list[str]:
    """The records to remove, the least recently used first."""
    users = Counter(digest for needed in inventory.needs.values() for digest in set(needed))
    users.update(inventory.others)
    sizes = Counter({digest: item.size for digest, item in inventory.blobs.items()})
    for path, item in inventory.rights.items():
        sizes[target_of(path)] += item.size
    programs = {path.rpartition("/")[2] for path in inventory.records if path.startswith(PROGRAMS)}
    held = inventory.size - sum(size for digest, size in sizes.items() if not users[digest] and digest not in programs)
    chosen: list[str] = []
    used = _last_used(inventory)
    kept_s = {CRASHES: REMEMBERED_S, ENDED_FOLDER: ENDED_KEPT_S}  # whatever the bounds are
    ages = {path: now - item.used for path, item in inventory.records.items()}
    kept = {path for path, age in ages.items() for folder, s in kept_s.items() if path.startswith(folder) and age <= s}
    kept.update(path_of(program) for path in kept & inventory.answers.keys() for program in inventory.answers[path])
    for path, item in sorted(inventory.records.items(), key=lambda entry: (used[entry[0]], entry[0])):
        if path in kept:
            continue
        is_old = path.startswith(CRASHES) or now - used[path] > bounds.max_age_s
        if not is_old and held <= bounds.max_bytes:
            continue
        chosen.append(path)
        digest = path.rpartition("/")[2]
        held -= item.size + sizes[digest] * path.startswith(PROGRAMS)
        for digest in set(inventory.needs[path]):
            users[digest] -= 1
            held -= sizes[digest] if not users[digest] and digest not in programs else 0
    return chosen


def _last_used(inventory: Inventory) -> Mapping[str, float]:
    """When each record was last used. An answer counts as use of its programs, a moment later: it is removed first."""
    used = {path: item.used for path, item in inventory.records.items()}
    for path, digests in inventory.answers.items():
        for program in map(path_of, digests):
            if program in used:
                used[program] = max(used[program], math.nextafter(used[path], math.inf))
    return used


async def _withdraw(store: ObjectStore, right: Item) -> bool:
    """Remove a right, unless its target was stored meanwhile: the right may have been granted before that."""
    if not await remove(store, right):
        return False
    digest = target_of(right.path)
    with explained("The store does not answer"):
        found = await store.looks(f"{folder}{digest[:2]}/{digest}" for folder in (PROGRAMS, BLOBS))
    if any(found):
        await Records(store).create(right.path, {})
    return not any(found)


async def remove(store: ObjectStore, item: Item) -> bool:
    """Remove an object unless it was written or used since it was listed."""
    with explained("The store does not delete old entries"), suppress(FileNotFoundError):
        (found,) = await store.looks([item.path])
        if found is None or found.used != item.used:
            return False
        await store.delete(item.path)
        return True
    return False


def unfinished(store: ObjectStore) -> list[str]:
    """Files that a killed writer left in a directory; an object store has none."""
    if store.root is None:
        return []
    oldest = clock.time() - LEFT_S
    found: list[str] = []
    for path in store.root.rglob("*#*"):
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


@asynccontextmanager
async def upkeep(store: ObjectStore, bounds: Bounds) -> AsyncGenerator[None]:
    """Keep the store within its bounds, if any, and free of leftovers of killed processes, during the block."""

    async def once() -> None:
        evicted = await evict(store, bounds)
        files = await asyncio.to_thread(unfinished, store)
        await asyncio.to_thread(remove_unfinished, files)
        signs = await abandoned(store)
        if evicted.records or evicted.blobs or evicted.rights or files or signs:
            _log.info("the store was maintained", **asdict(evicted), unfinished=len(files), signs=signs)

    is_bounded, keeping = bounds != Bounds(), Background()
    every_s = EVERY_S if is_bounded else UNBOUNDED_EVERY_S
    keeping.see_to(periodically("keep up the store", every_s, once, at_once=is_bounded))
    try:
        yield
    finally:
        await keeping.end()
