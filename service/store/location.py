"""Where the store is: a directory, or an object store by URL."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import AzureStore, GCSStore, LocalStore, MemoryStore, S3Store, from_url

from tensorkiln.errors import UnavailableError

from .disk import STORE_MODE, Disk, make_folder

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

ObjectStore: TypeAlias = AzureStore | GCSStore | LocalStore | MemoryStore | S3Store


def open_store(location: str, *, make: bool = True) -> ObjectStore:
    """The store at a path, or at a URL of the schemes memory, s3, gs, az (credentials come from the environment).

    `make` a directory that does not exist. UnavailableError when it cannot be used.
    """
    with explained(f"The store at {location} (KILN_STORE, or KILN_HOME) cannot be opened"):
        if urlsplit(location).scheme in ("", "file"):
            path = Path(urlsplit(location).path).expanduser().absolute()
            if make:
                make_folder(path, STORE_MODE)
            elif not path.is_dir():
                raise NotADirectoryError("there is no such directory")
            return LocalStore(path)
        store = from_url(location)
    if isinstance(store, AzureStore | GCSStore | LocalStore | MemoryStore | S3Store):
        return store
    raise UnavailableError(f"The store at {location} cannot be written to.")


def directory_of(store: ObjectStore) -> Path | None:
    """Where the files of a store are, if it is a directory."""
    prefix = store.prefix if isinstance(store, LocalStore) else None
    return Path(prefix) if prefix is not None else None


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


def objects_of(store: ObjectStore) -> Disk | Bucket:
    """The objects of `store`. Methods raise errors that `explained` translates, or FileNotFoundError."""
    root = directory_of(store)
    return Disk(root) if root is not None else Bucket(store)


class Bucket:
    """An object store, with the methods of `Disk`. All writes are durable when they return."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

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
