"""The application."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache, partial
from operator import attrgetter
from typing import Final

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from service.engine.engine import Engine
from service.fairness.shares import Shares
from service.http import problems
from service.http.answers import described
from service.http.connections import most_connections
from service.http.middlewares import Admission, Guard, RequestMemory, Requests
from service.http.openapi import document
from service.identity.policy import DOCS_ASSETS, PUBLIC
from service.observe.traces import TELEMETRY, recorded
from service.process.memory_limit import MemoryLimit
from service.routes import about, compile, jobs, mcp, pages, programs, questions
from service.settings import Settings
from service.store.evict import Bounds, upkeep
from service.store.location import open_store

from .fork_servers import ForkServers
from .listen import authenticator

_ROUTES: Final = (compile, jobs, questions, programs, about, mcp, pages)
"""In the order of the OpenAPI document."""


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
