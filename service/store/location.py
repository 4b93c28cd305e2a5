"""Where the store is: a directory, or an object store by URL."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store, from_url

from tensorkiln.errors import UnavailableError

from .disk import STORE_MODE, Disk, Item, make_folder

if TYPE_CHECKING:
    from obstore import ObjectMeta

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_AT_ONCE: Final = 16
Remote: TypeAlias = AzureStore | GCSStore | MemoryStore | S3Store


class Bucket:
    """An object store, with the methods of `Disk`. All writes are durable when they return."""

    root: None = None

    def __init__(self, store: Remote) -> None:
        self._store = store
        self._lookers = asyncio.Semaphore(_AT_ONCE)

    async def looks(self, paths: Iterable[str]) -> list[Item | None]:
        return await asyncio.gather(*map(self._look, paths))

    def touch(self, path: str, after_s: float) -> bool:
        """Nothing: there are only times of writing."""
        return False

    async def names(self, folder: str) -> list[str]:
        found = await self._store.list_with_delimiter_async(folder)
        return sorted(entry["path"].rpartition("/")[2] for entry in found["objects"])

    async def items(self, prefix: str) -> AsyncGenerator[Item]:
        async for chunk in self._store.list(prefix.rstrip("/") or None):
            for meta in chunk:
                yield _item(meta)

    async def _look(self, path: str) -> Item | None:
        async with self._lookers:
            with suppress(FileNotFoundError):
                return _item(await self._store.head_async(path))
        return None

    async def read(self, path: str) -> bytes:
        return (await (await self._store.get_async(path)).bytes_async()).to_bytes()

    async def write(self, path: str, content: bytes, *, durable: bool) -> None:
        await self._store.put_async(path, content)

    async def create(self, path: str, content: bytes, *, durable: bool) -> bool:
        try:
            await self._store.put_async(path, content, mode="create")
        except AlreadyExistsError:
            return False
        return True

    async def sync(self, path: str) -> bool:
        return True

    async def delete(self, path: str) -> None:
        await self._store.delete_async(path)


def _item(meta: ObjectMeta) -> Item:
    written = meta["last_modified"]
    return Item(meta["path"], meta["size"], written.timestamp(), (meta["e_tag"], written, meta["size"]))


ObjectStore: TypeAlias = Disk | Bucket
"""A store. Methods raise errors that `explained` translates, or FileNotFoundError."""


def open_store(location: str, *, make: bool = True) -> ObjectStore:
    """The store at a path, or at a URL of the schemes memory, s3, gs, az. UnavailableError when it cannot be used."""
    with explained(f"The store at {location} (KILN_STORE, or KILN_HOME) cannot be opened"):
        if urlsplit(location).scheme in ("", "file"):
            path = Path(urlsplit(location).path).expanduser().absolute()
            if make:
                make_folder(path, STORE_MODE)
            elif not path.is_dir():
                raise NotADirectoryError("there is no such directory")
            return Disk(path)
        store = from_url(location)
    if isinstance(store, AzureStore | GCSStore | MemoryStore | S3Store):
        return Bucket(store)
    raise UnavailableError(f"The store at {location} cannot be written to.")


class FullStoreError(UnavailableError):
    """The disk of the store has no room: what is there can be had, and nothing more can be kept."""


@contextmanager
def explained(what: str) -> Generator[None]:
    """Raise failures of the store in the block as UnavailableError. FileNotFoundError passes: it is a valid answer."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (BaseError, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        is_full = isinstance(error, OSError) and error.errno in _FULL
        raise (FullStoreError if is_full else UnavailableError)(f"{what}: {reason}.") from error
