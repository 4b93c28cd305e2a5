"""The bodies of requests that have become jobs."""

from __future__ import annotations

from collections.abc import Callable

from service.process.memory_limit import MemoryLimit
from service.wire.body import Body

from .blobs import Blobs, digest_of


class Bodies:
    """Bodies in `blobs`, each prefixed with the `salt` of its caller.

    Blobs are shared by content, and an existing one is not written again. Without the prefix, a tenant could tell by
    the time of a write whether another had sent the same body.

    While a body is written it is in memory twice; `memory_limit` must have room for it.
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
