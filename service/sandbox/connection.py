"""One fork server process, seen from the service's event loop."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from tensorkiln.errors import LostWorkerError, TensorkilnError, UnavailableError

from . import control
from .control import Cancel, Ended, Fork, Limits, Ready, Refused, Unready
from .spawn import END_GRACE_S, Spawned


class Spending:
    """The cost of some work: processor `seconds`, `charge`d as they are known, and `run_s` of time outside queues."""

    def __init__(self, charge: Callable[[float], None] = lambda _: None) -> None:
        self._charge = charge
        self._unknown = 0
        self._settled = asyncio.Event()
        self._settled.set()
        self.seconds = self.run_s = 0.0

    def begin(self) -> None:
        """Count one more process whose seconds are not known yet."""
        self._unknown += 1
        self._settled.clear()

    def end(self, seconds: float) -> None:
        """Add the seconds of a process counted by `begin`."""
        self.add(seconds)
        self._unknown -= 1
        if not self._unknown:
            self._settled.set()

    def add(self, seconds: float) -> None:
        """Add seconds that were spent elsewhere."""
        self.seconds += seconds
        self._charge(seconds)

    def lose(self, run_s: float) -> None:
        """Add a lost attempt. Its processor time is unknown, and taken to be as long."""
        self.run_s += run_s
        self.add(run_s)

    async def settled(self, within_s: float) -> bool:
        """Wait up to `within_s` seconds for all outstanding amounts; return whether they arrived."""
        try:
            async with asyncio.timeout(within_s):
                await self._settled.wait()
        except TimeoutError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class RunningTask:
    """One task, started at `begun` (loop time): `ended` is set when its process is gone."""

    task: int
    begun: float
    spending: Spending
    ended: asyncio.Future[Ended]


class Connection:
    """A connection to a fork server; `is_lost` once the server is gone, which fails all its running tasks."""

    def __init__(self, spawned: Spawned) -> None:
        self._process = spawned.process
        self._orders = spawned.orders
        self._scratch = spawned.scratch
        self._loop = asyncio.get_running_loop()
        self._numbers = count()
        self._waiting: dict[int, RunningTask] = {}
        self._ready: asyncio.Future[Ready] = self._loop.create_future()
        self._orders.setblocking(False)
        self._loop.add_reader(self._orders.fileno(), self._receive)
        self.is_lost = False

    @staticmethod
    async def open(spawned: Spawned, timeout_s: float) -> tuple[Connection, Ready]:
        """Wait until a fork server is ready; UnavailableError after `timeout_s` or when it cannot start."""
        connection = Connection(spawned)
        try:
            async with asyncio.timeout(timeout_s):
                return connection, await asyncio.shield(connection._ready)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                connection.kill()  # a cancelled caller must not wait for a graceful end
            await asyncio.shield(connection.close())
            if isinstance(error, TimeoutError):
                raise UnavailableError(f"The fork server was not ready within {timeout_s:g} s.") from None
            if isinstance(error, LostWorkerError):
                raise UnavailableError(
                    f"The fork server ended with status {connection._process.returncode} before it was ready; "
                    "its standard error says why."
                ) from None
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def fork(self, kind: str, limits: Limits, channel: socket.socket, spending: Spending) -> RunningTask:
        """Order a task with `channel` as its socket; `spending` gets its processor seconds, or a lost task's seconds.

        LostWorkerError when the fork server is gone, UnavailableError when it does not keep up.
        """
        if self.is_lost:
            raise _lost()
        running = RunningTask(next(self._numbers), self._loop.time(), spending, self._loop.create_future())
        try:
            socket.send_fds(self._orders, [control.encode(Fork(running.task, kind, limits))], [channel.fileno()])
        except BlockingIOError:
            raise UnavailableError("The fork server does not take orders as fast as they come.") from None
        except OSError:
            self._lose()
            raise _lost() from None
        self._waiting[running.task] = running
        spending.begin()
        return running

    def cancel(self, running: RunningTask) -> None:
        """Kill a task whose caller has left, unless it has ended."""
        if running.task not in self._waiting or self.is_lost:
            return
        try:
            self._orders.send(control.encode(Cancel(running.task)))
        except BlockingIOError:
            # The fork server does not keep up; the task still ends at its deadline.
            return
        except OSError:
            self._lose()

    def kill(self) -> None:
        """Kill an unresponsive fork server; its tasks die with it."""
        self._process.kill()
        self._lose()

    async def close(self) -> None:
        """End the fork server and its tasks, and remove their files."""
        self._lose()
        try:
            await asyncio.to_thread(self._process.wait, END_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        await asyncio.to_thread(self._scratch.remove)

    def _receive(self) -> None:
        while not self.is_lost:
            try:
                datagram = self._orders.recv(control.MAX_DATAGRAM)
            except BlockingIOError:
                return
            except ConnectionResetError:
                # It ended with an order unread; its earlier reports are still in the buffer.
                continue
            except OSError:
                datagram = b""
            if not datagram:
                self._lose()
                return
            self._take(control.decode(datagram))

    def _take(self, report: control.Order | control.Report) -> None:
        match report:
            case Ready():
                self._ready.set_result(report)
            case Unready():
                _fail(self._ready, UnavailableError(f"The fork server cannot start: {report.reason}."))
            case Refused():
                error = UnavailableError(f"The operating system starts no process for the compile: {report.reason}.")
                _fail(self._over(report.task, 0.0).ended, error)
            case Ended():
                self._over(report.task, report.cpu_s).ended.set_result(report)
            case _:
                raise AssertionError(f"a fork server does not send {report}")

    def _over(self, task: int, cpu_s: float) -> RunningTask:
        """Remove and return a finished task, and charge its processor seconds."""
        running = self._waiting.pop(task)
        running.spending.end(cpu_s)
        return running

    def _lose(self) -> None:
        if self.is_lost:
            return
        self.is_lost = True
        self._loop.remove_reader(self._orders.fileno())
        self._orders.close()
        for running in self._waiting.values():
            running.spending.end(self._loop.time() - running.begun)
            _fail(running.ended, _lost())
        self._waiting.clear()
        _fail(self._ready, _lost())


def _lost() -> LostWorkerError:
    return LostWorkerError("The process that did the work is gone; send the request again.")


def _fail(future: asyncio.Future[Any], error: TensorkilnError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # mark it as retrieved: the caller may have left
