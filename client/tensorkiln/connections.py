"""The HTTP connections of one event loop to one address."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeVar
from urllib.request import getproxies

import httpx2

from .deadline import Deadline
from .embedded import Address
from .proxy_environment import environment_errors

T = TypeVar("T")

CONNECT_TIMEOUT_S: Final = 5.0
# As many as there are requests under way; those above the second number are not kept for later ones.
_LIMITS: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=20)


class Connections:
    """A pool of them, whose requests all have `headers`.

    It belongs to the loop that is running, and to this process: one that is forked needs another.
    """

    def __init__(self, address: Address, headers: Mapping[str, str]) -> None:
        self.address = address
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        self._timeouts: set[asyncio.Timeout] = set()
        with environment_errors():
            self._http = httpx2.AsyncClient(
                base_url=address.url,
                headers=headers,
                limits=_LIMITS,
                transport=_local(address),
                verify=_may_need_certificates(address),
            )

    @property
    def is_of_process(self) -> bool:
        """Whether this process has made them, and not the one that it was forked from."""
        return self._process == os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether the loop that is running can use them."""
        return self.is_of_process and self._loop is asyncio.get_running_loop()

    def stream(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        quiet_s: float | None = None,
    ) -> AbstractAsyncContextManager[httpx2.Response]:
        """The answer to a request, once its head is there; httpx2.HTTPError when there is none.

        After `quiet_s` seconds without a byte it is broken.
        """
        timeout = httpx2.Timeout(quiet_s, connect=CONNECT_TIMEOUT_S)
        return self._http.stream(method, path, content=body, headers=headers, timeout=timeout)

    async def read(self, items: AsyncIterator[T], deadline: Deadline | None) -> AsyncGenerator[T]:
        """The parts of an answer as they come. The same errors; different tasks may ask for one after the other."""
        while True:
            async with self.until(deadline):
                try:
                    item = await anext(items)
                except StopAsyncIteration:
                    return
            yield item

    @asynccontextmanager
    async def until(self, deadline: Deadline | None) -> AsyncGenerator[None]:
        """httpx2.ReadTimeout for a block that is not done at the deadline, or when the connections are closed."""
        try:
            async with asyncio.timeout(None if deadline is None else deadline.left_s) as timeout:
                self._timeouts.add(timeout)
                try:
                    yield
                finally:
                    self._timeouts.remove(timeout)
        except TimeoutError:
            raise httpx2.ReadTimeout("the answer is too slow") from None

    async def close(self) -> None:
        """Close them, and end whatever is waited for. Those of another loop are left to it."""
        if not self.is_here:
            return
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(self._loop.time())
        await self._http.aclose()

    def leave(self) -> None:
        """Have their loop close them, and wait for nothing."""
        if self.is_of_process:
            asyncio.run_coroutine_threadsafe(self.close(), self._loop)


def _local(address: Address) -> httpx2.AsyncHTTPTransport | None:
    if address.socket is None:
        return None
    return httpx2.AsyncHTTPTransport(uds=address.socket, verify=False, limits=_LIMITS)


def _may_need_certificates(address: Address) -> bool:
    """Whether any TLS is spoken: to load certificates takes most of the time of building a client."""
    return any(url.lower().startswith("https:") for url in (address.url, *getproxies().values()))
