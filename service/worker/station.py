"""A process of a worker: one bench, and the loop that it works in.

The loop has a thread of its own: between two orders Celery waits for the next, and the bench signs that it lives.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from mmap import mmap
from signal import SIGTERM
from threading import Thread
from typing import Any, TypeVar

import structlog
from celery import Celery
from celery.exceptions import Reject
from celery.signals import worker_process_init, worker_process_shutdown

from service.engine.farm.message import TASK, Message
from service.observe.export import record_spans
from service.observe.traces import continuing
from service.settings import Settings

from .bench import Bench
from .consuming import Consuming

T = TypeVar("T")

_log = structlog.get_logger()


class Station:
    """Begun in each process after it was forked: nothing of the store or of an event loop survives a fork."""

    def __init__(self, settings: Settings, consuming: Consuming) -> None:
        self._settings = settings
        self._consuming = consuming
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._bench: Bench | None = None
        self._end_spans = _nothing
        # Seen by the worker and by all that it forks.
        self._failed = mmap(-1, 1)

    @property
    def has_failed(self) -> bool:
        """Whether a process of the worker could not begin."""
        return self._failed[0] != 0

    def install(self, app: Celery) -> None:
        """Have the processes of the worker on `app` carry out its only task."""
        # Held by the signals weakly otherwise, and lost.
        worker_process_init.connect(self._begin, weak=False)
        worker_process_shutdown.connect(self._end, weak=False)
        app.task(name=TASK, acks_late=True, ignore_result=True)(self._carry_out)

    def _begin(self, **_: Any) -> None:
        if self._settings.tracing:
            self._end_spans = record_spans()
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="bench", daemon=True)
        self._thread.start()
        try:
            bench = Bench(self._settings, self._consuming.goes_on)
            self._run(bench.start())
        except Exception as error:
            # Celery would go on without a bench, and begin this process again for ever if it ended.
            _log.error("a process of the worker cannot begin; the worker ends", reason=str(error), exc_info=error)
            self._failed[0] = 1
            os.kill(os.getppid(), SIGTERM)
            return
        self._bench = bench

    def _end(self, **_: Any) -> None:
        if self._bench is not None:
            self._run(self._bench.close())
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
        self._end_spans()

    def _carry_out(self, **content: Any) -> None:
        if self._bench is None:
            raise Reject("this process could not begin", requeue=True)
        message = Message(**content)
        with continuing(message.trace):
            outcome = self._run(self._bench.work(message))
            _log.info("an order is over", outcome=outcome, digest=message.action, attempt=message.attempt)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _nothing() -> None:
    """Where there are no spans."""
