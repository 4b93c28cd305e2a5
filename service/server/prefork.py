"""Several processes that serve at one address: each accepts when it is idle, and all share one store.

This process binds the socket, hands it down to workers, passes signals on and restarts workers that die.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Final

import structlog

from service.observe.telemetry import configure_log
from service.settings import Settings

from .listen import BACKLOG, READY, Listener, listen, require_private_address

_AGAIN_S: Final = 1.0
"""Seconds until a worker that died is restarted."""
_SIGNALLED: Final = 128
"""What a shell adds to the number of the signal that ended a process."""
_SERVICE: Final = (__package__ or "").rpartition(".")[0]
_log = structlog.get_logger()


def serve_by_workers(settings: Settings, host: str, port: int, uds: str | None, workers: int) -> int:
    """As `serve`, with `workers` processes. They share the machine: see `Settings.for_one_of`."""
    configure_log(settings.log)
    require_private_address(settings, host, uds)
    with closing(listen(host, port, uds)) as listener:
        # The options of this interpreter for warnings and for the safe path are those of the workers.
        options = [*(["-P"] if sys.flags.safe_path else []), *(f"-W{option}" for option in sys.warnoptions)]
        arguments = ["--workers", str(workers), "--handed-down", str(os.getpid())]
        command = [sys.executable, *options, "-m", _SERVICE, *arguments]
        return asyncio.run(Workers(command, workers, listener).serve())


class Workers:
    """`count` processes that run `command`, to which the descriptor of the socket and their place are added."""

    def __init__(self, command: Sequence[str], count: int, listener: Listener) -> None:
        self._command = command
        self._count = count
        self._listener = listener
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._is_ending = False
        self._passed_on = 0

    async def serve(self) -> int:
        """Serve until a signal; the exit status. If the first worker does not start, that is its status."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, partial(self._end, number))
        # New connections wait here while workers are restarted.
        self._listener.socket.listen(BACKLOG)
        first = await self._start(0)
        if first is not None:
            return first
        statuses = await asyncio.gather(*(self._start(place) for place in range(1, self._count)))
        failed = next((status for status in statuses if status is not None), None)
        if failed is not None:
            self._end(signal.SIGTERM)
        elif not self._is_ending:
            print(f"{READY} {self._listener.address}", flush=True)
        ended = await asyncio.gather(*(self._keep(place) for place in tuple(self._processes)))
        # A worker that did not serve yet was ended by the signal itself.
        bad = [_as_shells_say(status) for status in ended if status not in (0, -self._passed_on)]
        return failed if failed is not None else next(iter(bad), 0)

    async def _start(self, place: int) -> int | None:
        """Start a worker at `place`; None once it is ready, its exit status if it ends before that."""
        socket = self._listener.socket.fileno()
        process = await asyncio.create_subprocess_exec(
            *self._command,
            str(socket),
            str(place),
            stdout=asyncio.subprocess.PIPE,
            pass_fds=[socket],
            process_group=0,  # a Ctrl-C at the terminal is this process's to pass on
        )
        assert process.stdout is not None
        self._processes[place] = process
        if self._is_ending:
            process.terminate()
        if (await process.stdout.readline()).startswith(READY.encode()):
            return None
        del self._processes[place]
        return _as_shells_say(await process.wait()) or 1

    async def _keep(self, place: int) -> int:
        """Restart the worker at `place` whenever it dies; the exit status of the last one, at shutdown."""
        while True:
            status = await self._processes[place].wait()
            if self._is_ending:
                return status
            _log.warning("a worker process died and is restarted", process=place, status=status)
            del self._processes[place]
            while place not in self._processes:
                await asyncio.sleep(_AGAIN_S)
                if self._is_ending:
                    return 0
                await self._start(place)

    def _end(self, number: int) -> None:
        """Pass a signal on. A second one ends the grace period of the first, as it does with one process."""
        self._is_ending, self._passed_on = True, number
        for process in self._processes.values():
            if process.returncode is None:
                process.send_signal(number)


def _as_shells_say(status: int) -> int:
    return _SIGNALLED - status if status < 0 else status
