"""The fork server: `python -m service.sandbox.forkserver CONTROL SCRATCH WALL NAMESPACES GIVES_WAY WARM_UP...`.

It calls the warm-ups, has a canary try how well a job is confined, then forks a process for a job, kills it at its
deadline and reports how it ended. Some processes are in reserve, those for compiles with the memory copied that one
writes to, so that a job seldom waits for its own. A process that has done a job for an owner is held for that owner's
next. The fork server has one thread, keeps no MLIR context, reads nothing that a user wrote, and ends when the service
closes its socket.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name

from service.lasting import lasting

from . import confine, control, pages, probe
from .child import Job
from .control import Cancel, Expired, Fork, Ready, Refused, Release, Rested, Unready
from .forked import Forked, Nursery
from .levels import Wall
from .removal import remove
from .remover import Remover
from .warm_ups import COMPILING

_MAX_REASON = 4 << 10
# Of two that are asked for at once, none waits for a fork.
_RESERVES = 2
_BREATH_S = 0.01
_RESTING = 8


class ForkServer:
    """Forks jobs in `nursery` on the orders that arrive at `orders`; their files are in `scratch`."""

    def __init__(self, orders: socket.socket, scratch: Path, nursery: Nursery, ready: Ready) -> None:
        self._orders = orders
        self._scratch = scratch
        self._nursery = nursery
        self._ready = ready
        self._selector = selectors.DefaultSelector()
        self._selector.register(orders, selectors.EVENT_READ, self._obey)
        self._remover = Remover(self._selector)
        self._forked: set[Forked] = set()
        self._running: dict[int, Forked] = {}
        self._reserves: list[Forked] = []
        # By their last job, those that have rested longest first.
        self._resting: dict[int, Forked] = {}
        self._may_reserve = True
        self._is_open = True

    def serve(self) -> None:
        """Until the service is gone."""
        self._report(self._ready)
        while self._is_open:
            lacks_reserves = self._may_reserve and len(self._reserves) < _RESERVES
            events = self._selector.select(self._breath() if lacks_reserves else self._to_deadline_s())
            for key, _ in events:
                # An event before this one may have closed its descriptor, and another may have it by now.
                if self._selector.get_map().get(key.fd) is key:
                    key.data()
            self._expire()
            if not events and lacks_reserves:
                self._lay_in_reserve()
        for forked in tuple(self._forked):
            self._bury(forked)
        self._remover.end()
        remove(self._scratch)

    def _breath(self) -> float:
        """Seconds until a reserve is laid in. While there is another, jobs go first, which want the processors too."""
        if not self._running or not self._reserves:
            return 0.0
        to_deadline_s = self._to_deadline_s()
        return _BREATH_S if to_deadline_s is None else min(_BREATH_S, to_deadline_s)

    def _to_deadline_s(self) -> float | None:
        """Seconds to the next deadline; None without one."""
        awaited = [running.deadline for running in self._running.values() if not running.is_expired]
        awaited += [resting.deadline for resting in self._resting.values()]
        return max(min(awaited) - time.monotonic(), 0.0) if awaited else None

    def _obey(self) -> None:
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
        elif isinstance(order, Cancel):
            self._cancel(order.job)
        elif isinstance(order, Release):
            self._release(order.job)

    def _cancel(self, job: int) -> None:
        if job in self._running:
            self._running[job].cancel()

    def _release(self, job: int) -> None:
        if job in self._running:
            self._running[job].release()
            self._rest(self._running[job])

    def _start(self, order: Fork, channel: int) -> None:
        try:
            forked = self._given(order, channel)
            if order.owner and forked.assignments.fileno() not in self._selector.get_map():
                self._selector.register(forked.assignments, selectors.EVENT_READ, lambda: self._hear(forked))
        except OSError as error:
            self._report(Refused(order.job, str(error)))
            return
        finally:
            os.close(channel)
        forked.begin(order)
        if self._nursery.gives_way:
            # Again: the kernel may have had enough of that when the process was young.
            confine.give_way(forked.pid)
        self._running[order.job] = forked
        self._may_reserve = True

    def _given(self, order: Fork, channel: int) -> Forked:
        """The process that has been given a job. OSError when the operating system makes none, or passes nothing on."""
        while (forked := self._waiting_for(order)) is not None:
            if forked.hand_over(order, channel):
                return forked
        forked = self._fork()
        # When it is gone already, its end is reported as that of any other.
        forked.hand_over(order, channel)
        return forked

    def _waiting_for(self, order: Fork) -> Forked | None:
        """A process that is there already and may do this job."""
        for job, resting in reversed(self._resting.items()):
            if resting.may_do(order):
                return self._resting.pop(job)
        return self._reserves.pop(0) if self._reserves else None

    def _hear(self, forked: Forked) -> None:
        if forked.hear():
            self._rest(forked)
        else:
            # It ends, or is not the child that it should be: one says once that it is done with a job that it has.
            self._selector.unregister(forked.assignments)
            forked.kill()

    def _rest(self, forked: Forked) -> None:
        job = forked.job
        if job is None or not forked.may_rest:
            return
        spent_s = forked.rest()
        if spent_s is None:
            forked.kill()  # its end is reported
            return
        del self._running[job]
        self._report(Rested(job, spent_s))
        self._resting[job] = forked
        if len(self._resting) > _RESTING:
            self._resting.pop(next(iter(self._resting))).kill()

    def _lay_in_reserve(self) -> None:
        try:
            self._reserves.append(self._fork())
        except OSError:
            self._may_reserve = False  # The next order says so, if it is still impossible then.

    def _fork(self) -> Forked:
        """A process without a job. OSError when the operating system makes none."""
        forked = self._nursery.fork()
        self._forked.add(forked)
        self._selector.register(forked.pidfd, selectors.EVENT_READ, lambda: self._bury(forked))
        self._selector.register(forked.stderr, selectors.EVENT_READ, lambda: self._listen(forked))
        return forked

    def _listen(self, forked: Forked) -> None:
        if not forked.listen():
            self._selector.unregister(forked.stderr)

    def _expire(self) -> None:
        now = time.monotonic()
        for job, running in self._running.items():
            if running.deadline <= now and not running.is_expired:
                running.is_expired = True
                # Told before the kill: a process with much memory takes its time to die.
                self._report(Expired(job, running.ran_s))
                running.kill()
        for job in [job for job, resting in self._resting.items() if resting.deadline <= now]:
            self._resting.pop(job).kill()

    def _bury(self, forked: Forked) -> None:
        self._forked.discard(forked)
        for descriptor in forked.descriptors:
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        end = forked.bury()
        if forked in self._reserves:
            self._reserves.remove(forked)
            self._may_reserve = False  # One that something kills is not replaced until there is a job.
        if forked.job is not None:
            del self._running[forked.job]
            self._report(end)
        elif forked.order is not None:
            self._resting.pop(forked.order.job, None)
        self._remover.take(forked.scratch)

    def _report(self, report: control.Report) -> None:
        try:
            self._orders.send(control.encode(report))
        except (BrokenPipeError, ConnectionResetError):
            self._is_open = False


def main(arguments: Sequence[str]) -> None:
    """Serve the socket with the descriptor of the first argument, with the directory of the second as scratch space.

    The third is a `Wall`, the fourth the namespaces of the service, the fifth 1 where compiles give way to all else.
    """
    descriptor, scratch, wall, namespaces, gives_way, *warm_ups = arguments
    # The service decides when this process ends: a Ctrl-C at the terminal reaches the whole process group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    orders = socket.socket(fileno=int(descriptor))
    with lasting():
        jobs: Mapping[str, Job] = resolve_name("service.sandbox.jobs:JOBS")
        for name in warm_ups:
            _warm_up(name, orders)
        gc.collect()  # a warm-up leaves garbage
    nursery, ready = probe.settle(Path(scratch), jobs, Wall(wall), tuple(namespaces.split(",")))
    if COMPILING in warm_ups:
        nursery.gives_way = gives_way == "1"
        # What reads or writes a request touches less than finding out and copying ahead would cost.
        nursery.written = pages.written_by(resolve_name(COMPILING))
    ForkServer(orders, Path(scratch), nursery, ready).serve()


def _warm_up(name: str, orders: socket.socket) -> None:
    """Call `module:function`. A fork server whose warm-up fails says why and ends; one thread must be left."""
    try:
        resolve_name(name)()
        if (threads := confine.threads()) != 1:
            raise RuntimeError(f"it leaves {threads} threads, and a process with more than one must not fork")
    except BaseException as error:  # whatever it is, this process ends by it
        reason = f"its warm-up {name} failed: {type(error).__name__}: {error}"
        orders.send(control.encode(Unready(reason[:_MAX_REASON])))
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
