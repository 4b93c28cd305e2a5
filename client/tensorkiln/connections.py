"""The HTTP connections of one event loop to one address."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeVar
from urllib.request import getproxies

import httpx2

from .embedded import Address
from .proxy_environment import environment_errors
from .retries import Deadline

T = TypeVar("T")

CONNECT_TIMEOUT_S: Final = 5.0
# Unlimited concurrent connections; at most 20 idle ones are kept for later requests.
_LIMITS: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=20)


class Connections:
    """A connection pool of the running event loop and this process, whose requests all have `headers`."""

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
        """Whether this process created them, not a parent before a fork."""
        return self._process == os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether the running loop can use them."""
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
        """Send a request, with a timeout of `quiet_s` seconds without a received byte. httpx2.HTTPError on failure."""
        timeout = httpx2.Timeout(quiet_s, connect=CONNECT_TIMEOUT_S)
        return self._http.stream(method, path, content=body, headers=headers, timeout=timeout)

    async def read(self, items: AsyncIterator[T], deadline: Deadline | None) -> AsyncGenerator[T]:
        """The parts of an answer as they arrive; errors as for `stream`. Different tasks may fetch successive parts."""
        while True:
            async with self.until(deadline):
                try:
                    item = await anext(items)
                except StopAsyncIteration:
                    return
            yield item

    @asynccontextmanager
    async def until(self, deadline: Deadline | None) -> AsyncGenerator[None]:
        """httpx2.ReadTimeout when the block is not done at the deadline, or when the connections are closed."""
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
        """Close the connections and abort their requests. Does nothing outside their own loop."""
        if not self.is_here:
            return
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(self._loop.time())
        await self._http.aclose()

    def leave(self) -> None:
        """Let their loop close them, without waiting."""
        if self.is_of_process:
            asyncio.run_coroutine_threadsafe(self.close(), self._loop)


def _local(address: Address) -> httpx2.AsyncHTTPTransport | None:
    if address.socket is None:
        return None
    return httpx2.AsyncHTTPTransport(uds=address.socket, verify=False, limits=_LIMITS)


def _may_need_certificates(address: Address) -> bool:
    """Whether any URL needs TLS. Loading certificates takes most of the time of creating a client."""
    return any(url.lower().startswith("https:") for url in (address.url, *getproxies().values()))
