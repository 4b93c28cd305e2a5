"""The broker as a service sees it: it takes a message, or it is found out within a second that it does not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, Final, TypeVar

import structlog
from amqp.exceptions import AMQPError
from celery import Celery
from kombu.exceptions import KombuError

from tensorkiln.errors import UnavailableError

from .app import declare
from .message import TASK, Message, queue_name

_PATIENCE_S: Final = 0.6
# How long the broker is taken for what it was when it was asked last.
_ASK_EVERY_S: Final = 1.0
_THREADS: Final = 4
# What pyamqp does with a connection that was lost is an AttributeError now and then; kombu says so too.
_FAILURES: Final = (KombuError, AMQPError, OSError, AttributeError)

T = TypeVar("T")

_log = structlog.get_logger()


class Broker:
    """Sends by `app`. Every method raises UnavailableError within a second when the broker does not do its part."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        # Celery blocks; a broker that hangs must not hold up the threads that the store works with.
        self._threads = ThreadPoolExecutor(_THREADS + 1, "broker")
        self._slots = asyncio.Semaphore(_THREADS)
        self._checking = asyncio.Lock()
        self._asked_at = float("-inf")
        self._is_down = False
        self._probe = app.connection_for_write()
        self._probing = Lock()

    async def send(self, message: Message) -> None:
        """Have the broker take a message: it is on its disk then."""
        if self._is_down:
            await self.check()
        content = message.to_json()
        # The wait for a thread is not the broker's; those who wait learn from those before them that it is gone.
        async with self._slots:
            if self._is_down:
                raise _down()
            await self._ask(lambda: self._app.send_task(TASK, kwargs=content, queue=queue_name()))

    async def check(self) -> None:
        """UnavailableError when the broker could not be reached a moment ago."""
        async with self._checking:
            if time.monotonic() - self._asked_at > _ASK_EVERY_S:
                await self.waiting()
            elif self._is_down:
                raise _down()

    async def waiting(self) -> int:
        """How many messages no worker has taken yet."""
        return await self._ask(self._count)

    def close(self) -> None:
        """Send nothing more. What hangs is left to hang."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._app.close()

    async def _ask(self, question: Callable[[], T]) -> T:
        asking = asyncio.get_running_loop().run_in_executor(self._threads, question)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                answer = await asyncio.shield(asking)
        except (*_FAILURES, TimeoutError) as error:
            asking.add_done_callback(_forget)
            self._is_down, self._asked_at = True, time.monotonic()
            _log.error("the broker does not answer", kind=type(error).__name__)
            raise _down() from None
        self._is_down, self._asked_at = False, time.monotonic()
        return answer

    def _count(self) -> int:
        with self._probing:
            try:
                return self._messages()
            except _FAILURES:
                # Of an earlier life of the broker: with a new connection it is seen whether there is a new one.
                self._probe.collect()
                self._probe = self._app.connection_for_write()
                # Left to itself, kombu waits two seconds before it says that there is nobody.
                self._probe.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
                return self._messages()

    def _messages(self) -> int:
        declare(self._app, self._probe)  # a broker that is new has no queue yet
        channel: Any = self._probe.channel()
        with channel:
            return channel.queue_declare(queue=queue_name(), passive=True).message_count


def _forget(asked: asyncio.Future[T]) -> None:
    if not asked.cancelled():
        asked.exception()


def _down() -> UnavailableError:
    return UnavailableError("The broker of the farm does not answer, so that nothing can be compiled; try again soon.")
