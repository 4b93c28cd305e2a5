"""Run the service until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import time
from contextlib import closing
from math import ceil
from typing import Final

import structlog
import uvicorn
from fastapi import FastAPI

from service.http.connections import HEAD_BYTES, SAFE_HEADERS, connections
from service.observe.log import configure_log
from service.process.memory_limit import give_back_large_blocks
from service.settings import Settings

from .app import create_app
from .fork_servers import ForkServers
from .listen import BACKLOG, READY, Listener, listen, require_private_address

# The exit status after SIGINT, as shells have it.
_INTERRUPTED: Final = 130
# Seconds until a second Ctrl-C is noticed.
_LOOK_EVERY_S: Final = 0.05
# Seconds for clients to read the answer that ends their request.
_LET_GO_S: Final = 3

_log = structlog.get_logger()


class _Server(uvicorn.Server):
    """Prints when it is ready, and reports not ready before it stops. Errors at the start of `app` are raised."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, address: str, *, notice_s: float, grace_s: float) -> None:
        super().__init__(config)
        self._app = app
        self._address = address
        self._notice_s = notice_s
        self._grace_s = grace_s

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        with self.capture_signals():
            async with self._app.router.lifespan_context(self._app):
                await self._serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(BACKLOG)  # the queue of the kernel, whatever asyncio was told
        print(f"{READY} {self._address}", flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        engine = self._app.state.engine
        engine.announce_end()
        end = time.monotonic() + self._notice_s
        while time.monotonic() < end and not self.force_exit:
            await asyncio.sleep(_LOOK_EVERY_S)
        engine.drain()
        # Before uvicorn cuts connections off: requests that still wait are answered that they can be retried.
        letting_go = asyncio.get_running_loop().call_later(self._grace_s, engine.ending.set)
        await super().shutdown(sockets)
        letting_go.cancel()
        if self.force_exit:
            # At a second Ctrl-C uvicorn drops everything where it stands.
            engine.ending.set()
            if self.server_state.tasks:
                await asyncio.wait({*self.server_state.tasks}, timeout=_LET_GO_S)


def serve(settings: Settings, begun: ForkServers, host: str, port: int, uds: str | None) -> int:
    """Serve until a signal; the exit status. TensorkilnError or OSError when it cannot start."""
    configure_log(settings.log)
    require_private_address(settings, host, uds)
    with closing(listen(host, port, uds)) as listener:
        return _serve(settings, begun, listener)


def serve_as_worker(settings: Settings, begun: ForkServers, socket_of_all: int, place: int) -> int:
    """As `serve`, as the worker at `place`, at a socket that the parent process has handed down."""
    configure_log(settings.log)
    with closing(Listener(socket.socket(fileno=socket_of_all), f"the socket of {os.getppid()}")) as listener:
        return _serve(settings, begun, listener, place)


def _serve(settings: Settings, begun: ForkServers, listener: Listener, place: int | None = None) -> int:
    """Serve; `place` is the number of this process, if several accept at the same socket."""
    give_back_large_blocks()
    grace_s = settings.shutdown_grace_s
    if grace_s < settings.answer_s:
        _log.warning(
            "answers may take longer than KILN_SHUTDOWN_GRACE_S; a shutdown would end them",
            shutdown_grace_s=grace_s,
            answer_s=settings.answer_s,
        )
    app = create_app(settings, begun)
    app.state.place = place
    config = uvicorn.Config(
        app,
        lifespan="off",  # the server has it around all that it does
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        # asyncio accepts this many at once: a worker takes one, so that other workers get the next.
        backlog=BACKLOG if place is None else 1,
        http=connections(settings.arrival_s),
        h11_max_incomplete_event_size=HEAD_BYTES,
        headers=list(SAFE_HEADERS.items()),
        ws="none",
        timeout_graceful_shutdown=ceil(grace_s) + _LET_GO_S,
    )
    server = _Server(config, app, listener.address, notice_s=settings.shutdown_notice_s, grace_s=grace_s)
    # uvicorn raises the signal again once it has stopped: by then there is nothing left to do.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    try:
        server.run(sockets=[listener.socket])
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0
