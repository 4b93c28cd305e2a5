"""The application."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI

from . import problems
from .capabilities import describe
from .engine.engine import COMPILER, Engine
from .openapi import document
from .routes import artifacts, capabilities, compile, health, programs, validate
from .sandbox.sandbox import Sandbox
from .settings import Settings

_ROUTERS: Final = (compile, validate, programs, artifacts, capabilities, health)


def create_app(settings: Settings, *, modules: tuple[str, ...] = (COMPILER,)) -> FastAPI:
    """The service with these settings. Its fork server, which imports `modules`, starts and ends with it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        sandbox = Sandbox(modules, max_output_mib=settings.compile_output_mib, test_hooks=settings.test_hooks)
        engine = Engine(settings, sandbox)
        try:
            app.state.capabilities = describe(settings, await engine.start())
            app.state.engine = engine
            yield
        finally:
            await engine.close()

    app = FastAPI(title="tensorkiln", lifespan=lifespan, redoc_url=None, redirect_slashes=False)
    app.state.settings = settings
    problems.install(app)
    for module in _ROUTERS:
        app.include_router(module.router)
    app.openapi = lambda: document(app)
    return app
