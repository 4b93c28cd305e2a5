"""`kiln mcp`: the tools over standard input and output, with the service that the SDK would use."""

from __future__ import annotations

from ..embedded import Address, embedded_service
from ..runner import LoopRunner
from ..sdk import Client
from ..settings import Settings, resolve_settings
from ..transport import Transport
from .local import local_tools
from .tools import TOOLS


def requests_of(settings: Settings) -> Transport:
    """Requests to the service of `settings`, which is started when there is none, with their API key."""

    def locate() -> Address:
        if settings.url is not None:
            return Address(settings.url)
        return embedded_service(settings.home, settings.startup_timeout_s).address()

    return Transport(
        LoopRunner(), locate, settings.timeout_s, lambda: None if settings.url is None else settings.api_key
    )


async def serve(url: str | None, timeout_s: float | None) -> None:
    """Answer until standard input ends."""
    from mcp.server.stdio import stdio_server

    from .server import make_server

    settings = resolve_settings(url, timeout_s=timeout_s)
    with Client(url, timeout_s=timeout_s) as client:
        server = make_server((*TOOLS, *local_tools(client)), requests_of(settings))
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
