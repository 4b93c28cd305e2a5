"""Run a task in a process of its own; every way in which that can end is an answer or a typed error."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

import structlog

from service.observe.instruments import FORK_SERVER_RESTARTS
from service.observe.watch import TaskFigures
from service.process.periodic import Background
from service.timeouts import OVERDUE_S
from tensorkiln.errors import LostWorkerError, TensorkilnError, UnavailableError
from tensorkiln.trust import is_at_least

from . import verdict
from .confine import MIB
from .connection import Connection, RunningTask, Spending
from .control import Limits, Ready
from .frames import FrameError, Message, encode_message, gathered
from .levels import Level, Wall
from .reply import Reply, TooMuchOutput
from .scratch import sweep
from .spawn import AFTERWARDS, Spawned

START_TIMEOUT_S: Final = 60.0

# A task that closed its socket is usually exiting; wait this long for its own end before killing it.
REAP_S: Final = 0.02

_log = structlog.get_logger()


@dataclass(eq=False)
class Sandbox:
    """Runs tasks, each in a process forked from a fork server that has called `warm_ups`, written `module:function`.

    A fork server that dies is replaced and its tasks are retried once: a task depends only on its request. Tasks are
    confined by `wall`, at the level `required` or a stronger one, and compiles give way to others. The warm-ups in
    `later` run when the fork server is first idle. `spawn` may return a fork server that is already started.
    """

    warm_ups: Sequence[str] = ()
    _: KW_ONLY
    max_output_mib: int = 256
    wall: Wall = Wall.AUTO
    required: Level = Level.PROCESS
    gives_way: bool = True
    later: Sequence[str] = (AFTERWARDS,)
    spawn: Callable[[], Spawned | None] = lambda: None
    ready: Ready | None = field(default=None, init=False)
    restarts: int = field(default=0, init=False)
    _connection: Connection | None = field(default=None, init=False)
    _ends: Background = field(default_factory=Background, init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _is_closed: bool = field(default=False, init=False)

    async def start(self) -> Ready:
        """Start the fork server; its report. UnavailableError when it does not get ready at the required level."""
        # Not awaited, and dropped when this process ends: there may be many files.
        threading.Thread(target=sweep, name="kiln-sweep", daemon=True).start()
        await self._connect()
        if self.ready is None:
            raise AssertionError("a connection is open only after it was ready")
        return self.ready

    async def run(
        self,
        kind: str,
        request: Message,
        limits: Limits,
        on_stage: Callable[[str], None] = lambda _: None,
        spending: Spending | None = None,
    ) -> Message:
        """Run a task of this kind; `spending` receives its processor seconds, some of them after the answer.

        Raises the task's TensorkilnError; CrashedError when its process died, DeadlineExceededError or
        ResourceExhaustedError at a limit, with `stage`, `signal` and more in `details`; LostWorkerError when the fork
        server died twice.
        """
        with TaskFigures(kind, request.header, on_stage) as figures:
            asked = (kind, request, limits, figures.begins, spending or Spending())
            try:
                return await self._attempt(await self._connect(), *asked)
            except LostWorkerError:
                return await self._attempt(await self._connect(), *asked)

    async def close(self) -> None:
        self._is_closed = True
        async with self._lock:
            ends = [self._connection.close()] if self._connection is not None else []
            await asyncio.gather(*ends, self._ends.settle())

    @property
    def pid(self) -> int | None:
        return self._connection.pid if self._connection is not None and not self._connection.is_lost else None

    async def _connect(self) -> Connection:
        async with self._lock:
            if self._is_closed:
                raise UnavailableError("The service is shutting down.")
            if self._connection is None or self._connection.is_lost:
                if self._connection is not None:
                    self.restarts += 1
                    FORK_SERVER_RESTARTS.inc()
                    _log.warning("the fork server died and is restarted", restarts=self.restarts)
                    self._ends.see_to(_remove(self._connection))
                # A replacement runs every warm-up before it is ready: a deferred one may have ended the last server.
                later = self.later if self.ready is None else ()
                spawned = self.spawn() or Spawned(self.warm_ups, self.wall, gives_way=self.gives_way, later=later)
                self._connection, ready = await Connection.open(spawned, START_TIMEOUT_S)
                try:
                    self._require(ready)
                except UnavailableError:
                    await self._connection.close()
                    raise
                self.ready = ready
            return self._connection

    def _require(self, ready: Ready) -> None:
        """Refuse a fork server with weaker isolation than required, or than its predecessor reported."""
        level, because = Level(ready.level), "; ".join(ready.shortcomings)
        if self.wall is Wall.BWRAP and level is not Level.EXTERNAL:
            raise UnavailableError(f"KILN_ISOLATION=bwrap, but tasks get the level {level} only: {because}.")
        if not is_at_least(level, self.required):
            raise UnavailableError(
                f"KILN_REQUIRE_ISOLATION={self.required}, but tasks get the level {level} only: {because}."
            )
        if self.ready is not None and not is_at_least(level, self.ready.level):
            raise UnavailableError(f"Tasks had the level of isolation {self.ready.level}, now {level} only: {because}.")

    async def _attempt(
        self,
        connection: Connection,
        kind: str,
        request: Message,
        limits: Limits,
        on_stage: Callable[[str], None],
        spending: Spending,
    ) -> Message:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                running = connection.fork(kind, limits, theirs, spending)
        except TensorkilnError:
            ours.close()
            raise
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
        except BaseException:
            # The caller has left.
            ours.close()
            connection.cancel(running)
            raise
        sending = asyncio.create_task(_send(writer, request))
        reply = Reply(self.max_output_mib * MIB, on_stage)
        try:
            async with asyncio.timeout(limits.deadline_s + OVERDUE_S):
                answer = await self._outcome(reply, reader, connection, running, limits)
        except TimeoutError:
            connection.kill()
            raise LostWorkerError("The fork server did not report the end of the compile; it was replaced.") from None
        finally:
            sending.cancel()
            writer.transport.abort()
            connection.cancel(running)
        try:
            if isinstance(answer, TensorkilnError):
                raise answer
            return answer
        finally:
            # The traceback of an error refers to this frame: a cycle that would keep the request in memory.
            del answer

    async def _outcome(
        self, reply: Reply, reader: asyncio.StreamReader, connection: Connection, running: RunningTask, limits: Limits
    ) -> Message | TensorkilnError:
        reading = asyncio.create_task(reply.read(reader))
        try:
            await asyncio.wait({reading, running.ended}, return_when=asyncio.FIRST_COMPLETED)
            is_expired = running.ended.done() and not running.ended.exception() and running.ended.result().expired
            # After its deadline, something that it started may keep its socket open.
            answer = None if is_expired and not reading.done() else await reading
        except TooMuchOutput:
            return verdict.too_much_output(self.max_output_mib, reply.stage)
        except FrameError as error:
            return verdict.garbled(error, reply.stage)
        finally:
            reading.cancel()
            # The traceback of its error refers to this frame: a cycle that would keep the bytes read in memory.
            del reading
        if answer is not None:
            return answer
        await asyncio.wait({running.ended}, timeout=REAP_S)
        # Its answer is over: it is killed, unless it has exited.
        connection.cancel(running)
        return verdict.verdict(await asyncio.shield(running.ended), limits, reply.stage)


async def _remove(lost: Connection) -> None:
    """Remove the files of a lost fork server. Its successor does not wait for that."""
    try:
        await lost.close()
    except Exception:
        _log.exception("the files of a lost fork server could not be deleted")


async def _send(writer: asyncio.StreamWriter, request: Message) -> None:
    # The end of a task that did not read its whole request is reported elsewhere.
    with suppress(ConnectionError):
        for piece in gathered(encode_message(request)):
            writer.write(piece)
            await writer.drain()
