"""One event loop in a thread: what the blocking clients of this process send, and wait for, runs there.

asyncio is imported when the loop is opened: what is kept needs none of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from threading import RLock, Thread, get_ident
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    import asyncio

P = ParamSpec("P")
T = TypeVar("T")


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

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine that the loop runs, in the context variables of the caller.

        An interrupt of the caller, by Ctrl-C for one, cancels the coroutine and waits `_END_S` for its end; a second
        interrupt does not wait.
        """
        outcome: Future[T] = Future()
        tasks: list[asyncio.Task[T]] = []

        def begin() -> None:
            tasks.append(self._loop.create_task(coroutine))
            tasks[0].add_done_callback(lambda task: _settle(outcome, task))

        self._loop.call_soon_threadsafe(begin)
        try:
            return outcome.result()
        except BaseException:
            if not outcome.done():
                self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())
                wait([outcome], _END_S)
            raise


def _settle(outcome: Future[T], task: asyncio.Task[T]) -> None:
    error = CancelledError() if task.cancelled() else task.exception()
    if error is None:
        outcome.set_result(task.result())
    else:
        outcome.set_exception(error)


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
