"""The objects of a store by their paths: files where it is a directory, and else what obstore makes of them."""

from __future__ import annotations

from typing import Protocol

from obstore.exceptions import AlreadyExistsError

from .disk import Disk
from .location import ObjectStore, directory_of


class Objects(Protocol):
    """What fails is an error that `explained` explains, or FileNotFoundError."""

    async def read(self, path: str) -> bytes:
        """The bytes at `path`. FileNotFoundError when there are none."""
        ...

    async def write(self, path: str, content: bytes, *, durable: bool) -> None:
        """Have `content` at `path`; what is `durable` survives a power failure from then on."""
        ...

    async def create(self, path: str, content: bytes, *, durable: bool) -> bool:
        """Have `content` at `path` unless something is there; whether it was written. What is there is `durable`."""
        ...

    async def sync(self, path: str) -> bool:
        """Make durable what is at `path`; False when nothing is."""
        ...

    async def delete(self, path: str) -> None:
        """Have nothing at `path`. FileNotFoundError when nothing is."""
        ...


def objects_of(store: ObjectStore) -> Objects:
    """Those of `store`."""
    root = directory_of(store)
    return Disk(root) if root is not None else _Remote(store)


class _Remote:
    """An object store, which answers when it has what it was given."""

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
