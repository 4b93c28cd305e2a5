"""Bytes by their SHA-256."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import sha256
from typing import Final

import structlog

from service import clock
from service.observe.instruments import count_corrupt
from service.process.memory_limit import MemoryLimit
from service.wire.body import Body

from .disk import Item
from .location import ObjectStore, explained

_log = structlog.get_logger()

INLINE_BYTES: Final = 256 << 10
"""Hashing this many bytes takes about as long as handing them to a thread."""
_MAX_REMEMBERED: Final = 1 << 16
# Files that are written at a time, and files that are read to be verified.
_AT_ONCE: Final = 16
FRESH_S: Final = 1800.0
"""Seconds after `put` in which a blob that no record names is safe from eviction."""


class Blobs:
    """Content-addressed bytes in `store`. Damaged ones are removed when they are met."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        # The version of each blob that was verified.
        self._verified: dict[str, tuple[object, ...]] = {}
        self._writers = asyncio.Semaphore(_AT_ONCE)
        self._readers = asyncio.Semaphore(_AT_ONCE)

    async def put(self, content: bytes, *, durable: bool = False) -> str:
        """Store `content`, `durable` against a power failure; its digest. UnavailableError when that fails."""
        digest = await digest_of(content)
        async with self._writers:
            with explained("The store does not take a blob"):
                # An existing blob is written again if an eviction might remove it meanwhile.
                is_there = await self.holds([digest]) and await self._is_fresh(digest)
                if is_there and (not durable or await self._store.sync(_path(digest))):
                    return digest
                await self._store.write(_path(digest), content, durable=durable)
            found = await self._look(digest)
            if found is not None and found.size == len(content):
                # What has just been hashed need not be read to be verified.
                self._remember(digest, found)
        return digest

    async def get(self, digest: str) -> bytes | None:
        """The bytes with this digest, verified; None when they are missing or damaged."""
        with explained("The store does not give a blob"):
            try:
                content = await self._store.read(_path(digest))
            except FileNotFoundError:
                self._verified.pop(digest, None)
                return None
        if await digest_of(content) == digest:
            return content
        count_corrupt("blob")
        self._verified.pop(digest, None)
        _log.error("a damaged blob was deleted", digest=digest)
        with explained("The store does not remove a damaged blob"), suppress(FileNotFoundError):
            await self._store.delete(_path(digest))
        return None

    async def holds(self, digests: Iterable[str]) -> bool:
        """Whether all of them are there and undamaged. A blob is read and hashed if its file is new or has changed."""
        wanted = list(dict.fromkeys(digests))
        with explained("The store does not answer"):
            found = await self._store.looks(map(_path, wanted))
        if None in found:
            return False
        known = self._verified
        unverified = [
            each for each, item in zip(wanted, found, strict=True) if item and known.get(each) != item.version
        ]
        return all(await asyncio.gather(*map(self._verify, unverified)))

    async def _verify(self, digest: str) -> bool:
        async with self._readers:
            found = await self._look(digest)
            if found is None or await self.get(digest) is None:
                return False
            self._remember(digest, found)
            return True

    async def _look(self, digest: str) -> Item | None:
        with explained("The store does not answer"):
            (found,) = await self._store.looks([_path(digest)])
        return found

    async def _is_fresh(self, digest: str) -> bool:
        """Whether the blob is safe from eviction for a while. Its file gets a new time: it may be durable already."""
        is_touched = self._store.touch(_path(digest), FRESH_S)
        found = await self._look(digest)
        if found is None or not is_touched:
            return found is not None and clock.time() - found.used < FRESH_S
        self._remember(digest, found)
        return True

    def _remember(self, digest: str, found: Item) -> None:
        if len(self._verified) >= _MAX_REMEMBERED:
            self._verified.clear()
        self._verified[digest] = found.version


def _path(digest: str) -> str:
    return f"blobs/{digest[:2]}/{digest}"


async def digest_of(content: bytes) -> str:
    """The SHA-256 of `content`; large content is hashed in a thread."""
    if len(content) <= INLINE_BYTES:
        return sha256(content).hexdigest()
    return await asyncio.to_thread(lambda: sha256(content).hexdigest())


class Bodies:
    """Bodies in `blobs`, each prefixed with the `salt` of its caller.

    Blobs are shared by content. Without the prefix, a tenant could tell by the time of a write whether another had sent
    the same body. While a body is written or read it is in memory twice.
    """

    def __init__(self, blobs: Blobs, salt: Callable[[], str], memory_limit: MemoryLimit) -> None:
        self._blobs = blobs
        self._salt = salt
        self._memory_limit = memory_limit

    async def put(self, body: Body, *, durable: bool) -> str:
        """Store the body of a request by the current caller; the digest that `get` takes."""
        self._memory_limit.require(len(body.content))
        return await self._blobs.put(self._prefix() + body.content, durable=durable)

    async def get(self, digest: str) -> Body | None:
        """The body that the current caller has stored; None when it is missing or damaged."""
        stored = await self._blobs.get(digest)
        if stored is None:
            return None
        # Versions without a prefix may have stored it.
        content = stored.removeprefix(self._prefix())
        return Body(content, await digest_of(content))

    def _prefix(self) -> bytes:
        return f"{self._salt()}\n".encode()
