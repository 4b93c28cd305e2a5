"""One event loop in a thread: what the blocking clients of this process send, and wait for, runs there.

asyncio is imported when the loop is opened: what is kept needs none of it.
"""

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
"""How often a thread that waits looks for signals."""
_END_S: Final = 20.0
"""For so long an interrupted call is waited for: a service that does not answer keeps no process."""


class _DaemonThreads(ThreadPoolExecutor):
    """A thread for each piece of work, which ends with the process.

    Those of a pool are no more as soon as the main thread ends, though other threads and `atexit` go on; and work that
    waits for other work of the same pool may take all that it has.
    """

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
    """The thread and its loop. It is a daemon: a process ends without it."""

    def __init__(self) -> None:
        import asyncio

        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_DaemonThreads())
        self._thread = Thread(target=self._loop.run_forever, name="kiln-loop", daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Whether the loop is what runs the caller."""
        return get_ident() == self._thread.ident

    def close(self, items: AsyncGenerator[Any], is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        """Close a generator of the loop, and wait for that; the loop itself, where it collects garbage, does not.

        At the end of the interpreter the loop runs no more, and nothing is waited for.
        """
        if is_ending():
            return
        if self.is_here:
            self._loop.create_task(items.aclose())
        else:
            self.call(items.aclose())

    def call(
        self, coroutine: Coroutine[Any, Any, T], undo: Callable[[T], Coroutine[Any, Any, object]] | None = None
    ) -> T:
        """The result of a coroutine that the loop runs, in the context variables of the caller.

        An interrupt of the caller, by Ctrl-C for one, cancels the coroutine and waits `_END_S` for its end; a second
        interrupt does not wait. A result that the interrupt keeps from the caller is undone.
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
    """A coroutine that the loop runs while a thread waits for it.

    Not a future of `concurrent.futures`: an interrupt may leave its condition locked, at which the loop then waits.
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
        """Whether the coroutine ends within so many seconds."""
        return self._running.acquire(timeout=timeout_s)

    def result(self) -> T:
        """What the coroutine gives or raises, once it has ended."""
        # The interpreter does not see a signal that arrives just before it waits until the wait is over.
        while not self.is_done and not self.wait(_LOOK_S):
            pass
        if self._error is not None:
            raise self._error
        return self._results[0]

    def begin(self) -> None:
        """Run the coroutine in the loop, which calls this."""
        self._task = self._loop.create_task(self._coroutine)
        self._task.add_done_callback(self._settle)

    def cancel(self) -> None:
        """Cancel it; the loop calls this. An interrupt may have come before `begin` was called."""
        if self._task is not None:
            self._task.cancel()
        elif not self.is_done:
            self._coroutine.close()
            self._end(CancelledError())

    def _settle(self, task: asyncio.Task[T]) -> None:
        # The task is garbage of the loop: an interrupt of the thread that frees it is lost.
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
    """The portal of this process, which the first call opens."""
    global _opened
    # Garbage may be collected, and a generator closed, wherever a lock is held.
    if _opened is not None:
        return _opened
    with _opening:
        if _opened is None:
            made = Portal()
            # A signal handler may have been first.
            _opened = _opened or made
        return _opened


def is_in_portal() -> bool:
    """Whether the caller runs in the loop of the portal."""
    return _opened is not None and _opened.is_here


def _forget() -> None:
    """A child has no such thread, and to close its copy of the loop would unsettle that of its parent."""
    global _opened, _opening
    if _opened is not None:
        _of_parents.append(_opened)
    _opened, _opening = None, RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
