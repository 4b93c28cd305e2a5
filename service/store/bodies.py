"""The bodies of requests that have become jobs."""

from __future__ import annotations

from collections.abc import Callable

from service.process.memory_limit import MemoryLimit
from service.wire.body import Body

from .blobs import Blobs, digest_of


class Bodies:
    """Bodies in `blobs`, each under what `salt` says of its caller.

    Blobs are shared by content, and one that is there is not written again: by the time that this takes, one tenant
    could tell whether another had sent the same body.

    While one is written it is in memory twice, for which there has to be room by `memory_limit`.
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
        # Jobs of before there was a prefix are done as well.
        content = stored.removeprefix(self._prefix())
        return Body(content, await digest_of(content))

    def _prefix(self) -> bytes:
        return f"{self._salt()}\n".encode()
