"""Small JSON objects at given paths. Each begins with the SHA-256 of the rest: a damaged one counts as missing."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, cast

import structlog

from service.observe.instruments import count_corrupt

from .location import ObjectStore, explained

_log = structlog.get_logger()
_SEAL_BYTES: Final = 64
_TOUCH_EVERY_S: Final = 600.0


class DamagedRecord(Exception):
    """The bytes of a record are not those that were written."""


class Records:
    """Records in `store`. Damaged ones are removed when they are met."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def put(self, path: str, content: Mapping[str, Any], *, durable: bool = False) -> None:
        """Write or replace the record at `path`; a `durable` one survives a power failure from then on."""
        sealed = _sealed(content)
        with explained("The store does not take a record"):
            await self._store.write(path, sealed, durable=durable)

    async def create(self, path: str, content: Mapping[str, Any], *, durable: bool = False) -> bool:
        """Write the record at `path` unless there is one; whether it was written. Of several writers one succeeds.

        With `durable`, the record then survives a power failure, even if another process wrote it.
        """
        sealed = _sealed(content)
        with explained("The store does not take a record"):
            return await self._store.create(path, sealed, durable=durable)

    async def get(self, path: str) -> dict[str, Any] | None:
        """The record at `path`; None when it is missing or damaged."""
        try:
            return await self.intact(path)
        except DamagedRecord:
            _log.error("a damaged record was deleted", path=path)
        await self.delete(path)
        return None

    async def intact(self, path: str) -> dict[str, Any] | None:
        """The record at `path`; None when it is missing. DamagedRecord when it is damaged; it is not removed."""
        with explained("The store does not give a record"):
            try:
                sealed = await self._store.read(path)
            except FileNotFoundError:
                return None
        content = unsealed(sealed)
        if content is None:
            count_corrupt("record")
            raise DamagedRecord(path)
        return content

    def touch(self, path: str) -> None:
        """Mark the record at `path` as used, for eviction. An object store only has the time of writing."""
        self._store.touch(path, _TOUCH_EVERY_S)

    async def in_use(self, paths: Collection[str]) -> bool:
        """Touch the records at these paths; whether there is one at each, damaged or not."""
        for path in paths:
            self.touch(path)
        with explained("The store does not answer"):
            return None not in await self._store.looks(paths)

    async def delete(self, path: str) -> None:
        with explained("The store does not remove a record"), suppress(FileNotFoundError):
            await self._store.delete(path)

    async def names(self, directory: str, most: int = 100_000) -> list[str]:
        """The last parts of the paths of up to `most` records in a directory."""
        with explained("The store does not list its records"), suppress(FileNotFoundError):
            return (await self._store.names(directory))[:most]
        return []


def unsealed(content: bytes) -> dict[str, Any] | None:
    """The record whose file has this content; None when it is damaged."""
    body = content[_SEAL_BYTES + 1 :]
    if content[: _SEAL_BYTES + 1] != _seal(body) + b"\n":
        return None
    try:
        record: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None  # anyone who can write to the store can compute the digest
    return cast(dict[str, Any], record) if isinstance(record, dict) else None


def _sealed(content: Mapping[str, Any]) -> bytes:
    body = json.dumps(content, separators=(",", ":")).encode()
    return _seal(body) + b"\n" + body


def _seal(body: bytes) -> bytes:
    return sha256(body).hexdigest().encode()
