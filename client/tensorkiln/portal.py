"""One event loop in a thread, in which all blocking clients send requests; cached answers need no asyncio."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from threading import Lock, RLock, Thread, get_ident
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    import asyncio

P = ParamSpec("P")
T = TypeVar("T")


_LOOK_S: Final = 0.5
"""Seconds between a waiting thread's checks for signals."""
_END_S: Final = 20.0
"""Seconds that an interrupted call is waited for, so that an unresponsive service does not block the process."""


class _DaemonThreads(ThreadPoolExecutor):
    """A daemon thread for each piece of work: a pool ends with the main thread, and tasks must not wait for tasks."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        outcome: Future[T] = Future()

        def work() -> None:
            if outcome.set_running_or_notify_cancel():
                try:
                    result = fn(*args, **kwargs)
                except BaseException as error:
                    outcome.set_exception(error)
                else:
                    outcome.set_result(result)

        Thread(target=work, name="kiln-work", daemon=True).start()
        return outcome


class Portal:
    """A daemon thread and its event loop; it does not keep the process alive."""

    def __init__(self) -> None:
        import asyncio

        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_DaemonThreads())
        self._thread = Thread(target=self._loop.run_forever, name="kiln-loop", daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Whether the caller runs in the loop."""
        return get_ident() == self._thread.ident

    def close(self, items: AsyncGenerator[Any], is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        """Close a generator in the loop and wait, unless the caller, the garbage collector, is in the loop itself."""
        if is_ending():
            return
        if self.is_here:
            self._loop.create_task(items.aclose())
        else:
            self.call(items.aclose())

    def call(
        self, coroutine: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, object]] | None = None
    ) -> T:
        """Run a coroutine in the loop, with the caller's context variables, and return its result.

        An interrupt, such as Ctrl-C, cancels it and waits up to `_END_S` for its end; `undo` gets its result.
        """
        call = _Call(self._loop, coroutine)
        try:
            self._loop.call_soon_threadsafe(call.begin)
            return call.result()
        except BaseException:
            if not call.is_done:
                self._loop.call_soon_threadsafe(call.cancel)
                call.wait(_END_S)
            if undo is not None and call.has_result:
                undoing = _Call(self._loop, undo(call.result()))
                self._loop.call_soon_threadsafe(undoing.begin)
                undoing.wait(_END_S)
            raise


class _Call(Generic[T]):
    """A coroutine that runs in the loop while a thread waits for it.

    Not a `concurrent.futures.Future`: an interrupt may leave its condition locked, which would block the loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> None:
        self._loop = loop
        self._coroutine = coroutine
        self._task: asyncio.Task[T] | None = None
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._running = Lock()
        self._running.acquire()

    @property
    def has_result(self) -> bool:
        return bool(self._results)

    @property
    def is_done(self) -> bool:
        return self.has_result or self._error is not None

    def wait(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` seconds; return whether the coroutine has ended."""
        return self._running.acquire(timeout=timeout_s)

    def result(self) -> T:
        """Wait for the end of the coroutine; return its result or raise its error."""
        # Wait in short intervals: a signal that arrives just before a wait is handled only after it.
        while not self.is_done and not self.wait(_LOOK_S):
            pass
        if self._error is not None:
            raise self._error
        return self._results[0]

    def begin(self) -> None:
        """Start the coroutine. Called by the loop."""
        self._task = self._loop.create_task(self._coroutine)
        self._task.add_done_callback(self._settle)

    def cancel(self) -> None:
        """Cancel the coroutine, which may not have begun. Called by the loop."""
        if self._task is not None:
            self._task.cancel()
        elif not self.is_done:
            self._coroutine.close()
            self._end(CancelledError())

    def _settle(self, task: asyncio.Task[T]) -> None:
        # Drop the task in the loop: an interrupt is lost if it arrives in the thread that frees the task.
        self._task = None
        error = CancelledError() if task.cancelled() else task.exception()
        if error is None:
            self._results.append(task.result())
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        self._error = error
        self._running.release()


_opened: Portal | None = None
_opening = RLock()
_of_parents: Final[list[Portal]] = []


def portal() -> Portal:
    """The portal of this process, opened at the first call."""
    global _opened
    # Check before locking: the garbage collector may close a generator, and so call this, while a lock is held.
    if _opened is not None:
        return _opened
    with _opening:
        if _opened is None:
            made = Portal()
            # A signal handler on this thread may have opened one meanwhile.
            _opened = _opened or made
        return _opened


def is_in_portal() -> bool:
    """Whether the caller runs in the loop of the portal."""
    return _opened is not None and _opened.is_here


def _forget() -> None:
    """Forget the portal in a forked child, which lacks the thread. Closing its copy would disturb the parent's loop."""
    global _opened, _opening
    if _opened is not None:
        _of_parents.append(_opened)
    _opened, _opening = None, RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
