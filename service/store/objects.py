"""The objects of a store by path: files in a directory, or objects in a bucket through obstore."""

from __future__ import annotations

from obstore.exceptions import AlreadyExistsError

from .disk import Disk
from .location import ObjectStore, directory_of


def objects_of(store: ObjectStore) -> Disk | Bucket:
    """The objects of `store`. Methods raise errors that `explained` translates, or FileNotFoundError."""
    root = directory_of(store)
    return Disk(root) if root is not None else Bucket(store)


class Bucket:
    """An object store, with the methods of `Disk`. All writes are durable when they return."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    async def read(self, path: str) -> bytes:
        """As `Disk` has it."""
        return (await (await self._store.get_async(path)).bytes_async()).to_bytes()

    async def write(self, path: str, content: bytes, *, durable: bool) -> None:
        """As `Disk` has it."""
        await self._store.put_async(path, content)

    async def create(self, path: str, content: bytes, *, durable: bool) -> bool:
        """As `Disk` has it."""
        try:
            await self._store.put_async(path, content, mode="create")
        except AlreadyExistsError:
            return False
        return True

    async def sync(self, path: str) -> bool:
        """As `Disk` has it."""
        return True

    async def delete(self, path: str) -> None:
        """As `Disk` has it."""
        await self._store.delete_async(path)
