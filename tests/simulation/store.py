"""An in-memory store that several processes share, each over a connection that may be slow or interrupted."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from obstore.exceptions import AlreadyExistsError

from service.store.location import Bucket

from .process import Process

T = TypeVar("T")


class Content:
    """The result of a read, with obstore's interface."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def bytes_async(self) -> Content:
        return self

    def to_bytes(self) -> bytes:
        return self._content


class Contents:
    """The objects by path, with write times. `watch` is called before each write, with process, path and content."""

    def __init__(self, watch: Callable[[str, str, bytes], None]) -> None:
        self._watch = watch
        self.objects: dict[str, tuple[bytes, float]] = {}

    def below(self, prefix: str) -> list[str]:
        """The paths with this prefix, sorted."""
        return sorted(path for path in self.objects if path.startswith(prefix))

    def put(self, process: Process, path: str, content: bytes, *, only_new: bool) -> None:
        """Write an object on behalf of a process. AlreadyExistsError with `only_new`, if the path exists."""
        if only_new and path in self.objects:
            raise AlreadyExistsError(path)
        self._watch(process.name, path, content)
        self.objects[path] = content, process.time()

    def of(self, process: Process) -> Bucket:
        """The store as a process sees it."""
        return Bucket(cast(Any, _View(self, process)))


class _View:
    """The part of obstore's interface that a bucket uses."""

    def __init__(self, contents: Contents, process: Process) -> None:
        self._contents = contents
        self._process = process

    async def _asked(self, act: Callable[[], T]) -> T:
        await self._process.reach(is_there=False)
        result = act()
        await self._process.reach(is_there=True)
        return result

    async def get_async(self, path: str) -> Content:
        return await self._asked(lambda: Content(self._found(path)[0]))

    async def put_async(self, path: str, content: bytes, *, mode: str = "overwrite") -> None:
        await self._asked(lambda: self._contents.put(self._process, path, content, only_new=mode == "create"))

    async def delete_async(self, path: str) -> None:
        await self._asked(lambda: self._contents.objects.pop(path, None))

    async def head_async(self, path: str) -> dict[str, Any]:
        return await self._asked(lambda: self._meta(path))

    async def list_with_delimiter_async(self, prefix: str) -> dict[str, Any]:
        return {"objects": await self._asked(lambda: list(map(self._meta, self._contents.below(f"{prefix}/"))))}

    async def list(self, prefix: str | None) -> AsyncGenerator[list[dict[str, Any]]]:
        yield await self._asked(lambda: list(map(self._meta, self._contents.below(f"{prefix}/" if prefix else ""))))

    def _found(self, path: str) -> tuple[bytes, float]:
        found = self._contents.objects.get(path)
        if found is None:
            raise FileNotFoundError(path)
        return found

    def _meta(self, path: str) -> dict[str, Any]:
        content, written = self._found(path)
        when = datetime.fromtimestamp(written, UTC)
        return {"path": path, "size": len(content), "last_modified": when, "e_tag": str(written)}
