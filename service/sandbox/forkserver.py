"""The fork server: `python -m service.sandbox.forkserver CONTROL WARM_UP...`.

On `Begin` it calls the warm-ups, tests the confinement with a canary, then forks a process for each task, kills it at
its deadline and reports how it ended. It has one thread, reads no user input, and exits when its socket is closed.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import TypeAlias

from service.process.interpreter import frozen_heap

from . import confine, control, probe
from .child import Task
from .control import Begin, Cancel, Fork, Ready, Refused, Unready
from .forked import Forked, Forker
from .levels import Wall
from .scratch import removal, remove
from .spawn import AFTERWARDS, COMPILING

WarmUp: TypeAlias = Callable[[], object]

_MAX_REASON = 4 << 10
# Idle time that starts a deferred warm-up, and the time after which it starts without one.
_QUIET_S = 0.25
_NOT_QUIET_S = 5.0
# Files of ended tasks are removed for so long at a time, so that many files delay no task.
_CLEAN_UP_S = 0.002


class ForkServer:
    """Forks tasks as orders arrive. The warm-ups in `later` run when the server is idle."""

    def __init__(
        self,
        orders: socket.socket,
        scratch: Path,
        forker: Forker,
        ready: Ready,
        later: Sequence[WarmUp] = (),
    ) -> None:
        self._orders = orders
        self._scratch = scratch
        self._forker = forker
        self._ready = ready
        self._selector = selectors.DefaultSelector()
        self._selector.register(orders, selectors.EVENT_READ, self._handle_order)
        self._leftovers: list[Iterator[None]] = []
        self._running: dict[int, Forked] = {}
        self._later = list(later)
        self._quiet_by = time.monotonic() + _NOT_QUIET_S
        self._is_open = True

    def serve(self) -> None:
        """Serve orders until the service is gone."""
        self._report(self._ready)
        while self._is_open:
            events = self._selector.select(self._timeout_s())
            for key, _ in events:
                # An earlier event may have closed this descriptor, and its number may be reused by now.
                if self._selector.get_map().get(key.fd) is key:
                    key.data()
            now = time.monotonic()
            for running in self._running.values():
                if running.deadline <= now and not running.is_expired:
                    running.is_expired = True
                    running.kill()
            if self._leftovers:
                self._clean_up()
            elif self._later and (not (events or self._running) or time.monotonic() > self._quiet_by):
                self._warm_up(self._later.pop(0))
        for forked in tuple(self._running.values()):
            self._reap(forked)
        remove(self._scratch)

    def _timeout_s(self) -> float | None:
        """Seconds to the next deadline, at most _QUIET_S while warm-ups are deferred; None without either.

        0 while files of tasks are to be removed.
        """
        if self._leftovers:
            return 0.0
        now = time.monotonic()
        awaited = [max(running.deadline - now, 0.0) for running in self._running.values() if not running.is_expired]
        return min([*awaited, _QUIET_S] if self._later else awaited, default=None)

    def _clean_up(self) -> None:
        """Remove some of the files that ended tasks have left."""
        until = time.monotonic() + _CLEAN_UP_S
        for _ in self._leftovers[0]:
            if time.monotonic() > until:
                return
        del self._leftovers[0]

    def _warm_up(self, warm_up: WarmUp) -> None:
        try:
            with frozen_heap():
                warm_up()
                gc.collect()
            self._forker.measure()
        except Exception:
            # Tasks load it themselves and report the failure.
            traceback.print_exc()
        # A server with more threads must not fork, so it exits. Its successor runs this before `Ready` and reports why.
        _require_one_thread()

    def _handle_order(self) -> None:
        try:
            datagram, descriptors, _, _ = socket.recv_fds(self._orders, control.MAX_DATAGRAM, 1)
        except ConnectionResetError:  # the service has left a report unread
            datagram, descriptors = b"", []
        if not datagram:
            self._is_open = False
            return
        order = control.decode(datagram)
        if isinstance(order, Fork):
            self._start(order, descriptors[0])
        elif isinstance(order, Cancel) and order.task in self._running:
            self._running[order.task].cancel()

    def _start(self, order: Fork, channel: int) -> None:
        try:
            forked = self._forker.fork(order, channel)
        except OSError as error:
            self._report(Refused(order.task, str(error)))
            return
        finally:
            os.close(channel)
        self._running[order.task] = forked
        self._selector.register(forked.pidfd, selectors.EVENT_READ, lambda: self._reap(forked))
        self._selector.register(forked.stderr, selectors.EVENT_READ, lambda: self._read_stderr(forked))

    def _read_stderr(self, forked: Forked) -> None:
        if not forked.read_stderr():
            self._selector.unregister(forked.stderr)

    def _reap(self, forked: Forked) -> None:
        for descriptor in (forked.pidfd, forked.stderr):
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        del self._running[forked.task]
        self._report(forked.reap())
        try:
            os.rmdir(forked.scratch)
        except OSError:  # it is not empty
            self._leftovers.append(removal(forked.scratch))

    def _report(self, report: control.Report) -> None:
        try:
            self._orders.send(control.encode(report))
        except (BrokenPipeError, ConnectionResetError):
            self._is_open = False


def main(arguments: Sequence[str]) -> None:
    """Serve the socket whose descriptor is the first argument; the others are warm-ups, imported before `Begin`."""
    descriptor, *names = arguments
    # The service decides when this process ends: a Ctrl-C at the terminal reaches the whole process group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    orders = socket.socket(fileno=int(descriptor))
    with frozen_heap():
        tasks: Mapping[str, Task] = resolve_name(f"{__package__}.tasks:TASKS")
        warm_ups = {name: _loaded(name, orders) for name in names}
    datagram = orders.recv(control.MAX_DATAGRAM)
    if not datagram:
        return  # the service is gone
    begin = control.decode(datagram)
    assert isinstance(begin, Begin)
    compiles = COMPILING in warm_ups
    if compiles:
        warm_ups[AFTERWARDS] = _loaded(AFTERWARDS, orders)
    later = [warm_ups.pop(name) for name in begin.later if name in warm_ups]
    # Imported objects are frozen by now, so collecting the garbage of the warm-ups is fast.
    with frozen_heap():
        for name, warm_up in warm_ups.items():
            with _reporting_failure(name, orders):
                warm_up()
                _require_one_thread()
        gc.collect()
    scratch = Path(begin.scratch)
    forker, ready = probe.choose_confinement(scratch, tasks, Wall(begin.wall), begin.namespaces)
    forker.gives_way = compiles and begin.gives_way
    ForkServer(orders, scratch, forker, ready, later).serve()


def _loaded(name: str, orders: socket.socket) -> WarmUp:
    """Import the function named `module:function`."""
    with _reporting_failure(name, orders):
        return resolve_name(name)


def _require_one_thread() -> None:
    if (threads := confine.threads()) != 1:
        raise RuntimeError(f"it leaves {threads} threads, and a process with more than one must not fork")


@contextmanager
def _reporting_failure(name: str, orders: socket.socket) -> Generator[None]:
    """Send `Unready` with the reason when a warm-up fails, and re-raise."""
    try:
        yield
    except BaseException as error:  # whatever it is, this process ends by it
        reason = f"its warm-up {name} failed: {type(error).__name__}: {error}"
        orders.send(control.encode(Unready(reason[:_MAX_REASON])))
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
