"""The application, and its run until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from functools import cache, partial
from math import ceil
from operator import attrgetter
from typing import Final

import structlog
import uvicorn
from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from service.engine.engine import Engine
from service.fairness.shares import Shares
from service.http import problems
from service.http.answers import described
from service.http.connections import HEAD_BYTES, SAFE_HEADERS, connections, most_connections
from service.http.middlewares import Admission, Guard, RequestMemory, Requests
from service.http.openapi import document
from service.identity.authenticator import DOCS_ASSETS, PUBLIC
from service.observe.telemetry import TELEMETRY, configure_log, recorded
from service.process.memory_limit import MemoryLimit, give_back_large_blocks
from service.routes import about, compile, jobs, mcp, pages, programs, questions
from service.settings import Settings
from service.store.evict import Bounds, upkeep
from service.store.location import open_store

from .fork_servers import ForkServers
from .listen import BACKLOG, READY, Listener, authenticator, listen, require_private_address

_ROUTES: Final = (compile, jobs, questions, programs, about, mcp, pages)
"""In the order of the OpenAPI document."""
# The exit status after SIGINT, as shells have it.
_INTERRUPTED: Final = 130
# Seconds until a second Ctrl-C is noticed.
_LOOK_EVERY_S: Final = 0.05
# Seconds for clients to read the answer that ends their request.
_LET_GO_S: Final = 3

_log = structlog.get_logger()


def create_app(settings: Settings, begun: ForkServers | None = None) -> FastAPI:
    """The service with these settings. Its fork servers, which may have `begun` already, start and end with it."""
    fork_servers = begun or ForkServers()
    authentication = authenticator(settings)
    memory_limit = MemoryLimit(settings.memory_cap_mib)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        reader, compiler = fork_servers.sandboxes(settings)
        engine = Engine(
            settings, reader, compiler, authentication.keyring, memory_limit, is_private=fork_servers.is_for_one
        )
        with recorded(settings.tracing):
            try:
                app.state.capabilities = cache(partial(described, settings, await engine.start()))
                if not fork_servers.is_for_one:
                    app.state.capabilities()
                app.state.engine = engine
                bounds = Bounds.of(settings.store_max_mib, settings.store_max_age_h)
                async with upkeep(open_store(settings.store), bounds):
                    yield
            finally:
                await engine.close()

    app = FastAPIOffline(
        redoc_url=None,
        static_url=DOCS_ASSETS,
        title="tensorkiln",
        lifespan=lifespan,
        redirect_slashes=False,
        telemetry=TELEMETRY,
        # The operations of the document have the names of their functions.
        generate_unique_id_function=attrgetter("name"),
    )
    app.state.settings = settings
    app.state.place = None
    app.state.memory_limit = memory_limit
    # Each stream is a connection; half of the connections are left for other requests.
    app.state.streams = Shares(most_connections() // 2, "streams", "streams of events")
    app.add_middleware(RequestMemory, most=settings.intake_mib << 20)
    public = PUBLIC | ({about.METRICS} if settings.metrics == "public" else set())
    app.add_middleware(Admission, tenant=authentication.keyring.tenant, public=public)
    app.add_middleware(Guard, authenticator=authentication, public=public)
    app.add_middleware(Requests)
    problems.install(app)
    for module in _ROUTES:
        app.include_router(module.router)
    app.openapi = lambda: document(app)
    return app


class _Server(uvicorn.Server):
    """Prints when it is ready, and reports not ready before it stops. Errors at the start of `app` are raised."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, address: str) -> None:
        super().__init__(config)
        self._app = app
        self._address = address

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
        engine, settings = self._app.state.engine, self._app.state.settings
        engine.announce_end()
        end = time.monotonic() + settings.shutdown_notice_s
        while time.monotonic() < end and not self.force_exit:
            await asyncio.sleep(_LOOK_EVERY_S)
        engine.drain()
        # Before uvicorn cuts connections off: requests that still wait are answered that they can be retried.
        letting_go = asyncio.get_running_loop().call_later(settings.shutdown_grace_s, engine.ending.set)
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
    server = _Server(config, app, listener.address)
    # uvicorn raises the signal again once it has stopped: by then there is nothing left to do.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    try:
        server.run(sockets=[listener.socket])
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0
