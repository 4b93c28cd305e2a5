"""A cache of artifacts by SHA-256, verified whenever they are fetched or read."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

from .cache import LocalCache
from .errors import RequestError, UnavailableError
from .immediate import Offload, inline

MEMORY_BYTES = 64 << 20
DISK_BYTES = 1 << 30

_DIGEST = re.compile(r"[0-9a-f]{64}")


class ArtifactCache:
    """Artifacts in memory and, with `directory`, on disk, verified; the least recently used are evicted first."""

    def __init__(
        self,
        fetch: Callable[[str], Awaitable[bytes]],
        directory: Path | None = None,
        *,
        memory_bytes: int = MEMORY_BYTES,
        disk_bytes: int = DISK_BYTES,
        offload: Offload = inline,
    ) -> None:
        self._fetch = fetch
        self._offload = offload
        self._disk = LocalCache(directory, disk_bytes) if directory is not None else None
        self._memory_bytes = memory_bytes
        self._memory: OrderedDict[str, bytes] = OrderedDict()
        self._held = 0
        self._lock = threading.Lock()

    async def get(self, digest: str) -> bytes:
        """The artifact with this SHA-256 (64 lower-case hexadecimal digits).

        `RequestError` for anything else, `UnavailableError` when the service sends bytes with another digest.
        """
        if not _DIGEST.fullmatch(digest):
            raise RequestError(f"{digest!r} is not a SHA-256, which is 64 lower-case hexadecimal digits.")
        data = await self.kept(digest)
        if data is None:
            sent = await self._fetch(digest)
            data = await self._offload(lambda: self._verified(digest, sent))
            self._remember(digest, data)
        return data

    async def kept(self, digest: str) -> bytes | None:
        """The artifact if it is cached, else None; nothing is fetched."""
        data = self._remembered(digest)
        if data is None:
            data = await self._offload(lambda: self._read(digest))
            if data is not None:
                self._remember(digest, data)
        return data

    def _verified(self, digest: str, data: bytes) -> bytes:
        received = sha256(data).hexdigest()
        if received == digest:
            if self._disk is not None:
                self._disk.write(digest, data)
            return data
        raise UnavailableError(
            f"The service sent other bytes for artifact {digest}: their SHA-256 is {received}.",
            details={"expected": digest, "actual": received},
        )

    def _remembered(self, digest: str) -> bytes | None:
        with self._lock:
            if digest not in self._memory:
                return None
            self._memory.move_to_end(digest)
            return self._memory[digest]

    def _remember(self, digest: str, data: bytes) -> None:
        with self._lock:
            if digest in self._memory or len(data) > self._memory_bytes:
                return
            self._memory[digest] = data
            self._held += len(data)
            while self._held > self._memory_bytes:
                _, oldest = self._memory.popitem(last=False)
                self._held -= len(oldest)

    def _read(self, digest: str) -> bytes | None:
        data = self._disk.read(digest) if self._disk is not None else None
        if self._disk is None or data is None or sha256(data).hexdigest() == digest:
            return data
        self._disk.remove(digest)
        return None
