"""`kiln mcp`: the tools over standard input and output, with the SDK's default service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..embedded import Address, embedded_service
from ..runner import LoopRunner
from ..sdk import Client
from ..settings import Settings, resolve_settings
from ..transport import Transport
from .local import local_tools
from .report_file import report_file_tool
from .tool import Tool
from .tools import TOOLS

REPORTS: Final = "reports"
"""The folder for reports, below KILN_HOME."""


@dataclass(frozen=True, slots=True)
class _Requests:
    """Requests through a transport, to a service at a URL or on a Unix socket (`base_url` None)."""

    transport: Transport
    base_url: str | None

    async def get(self, path: str) -> bytes:
        return await self.transport.get(path)

    async def post(self, path: str, body: bytes) -> bytes:
        return await self.transport.post(path, body)


def requests_of(settings: Settings) -> _Requests:
    """Requests to the service of `settings` with its API key; without a URL, the embedded service is started."""

    def locate() -> Address:
        if settings.url is not None:
            return Address(settings.url)
        return embedded_service(settings.home, settings.startup_timeout_s).address()

    transport = Transport(
        LoopRunner(), locate, settings.timeout_s, lambda: None if settings.url is None else settings.api_key
    )
    return _Requests(transport, settings.url)


def tools_of(settings: Settings, client: Client) -> tuple[Tool, ...]:
    """The tools of the service and the local ones; reports of an embedded service are files."""
    shared = TOOLS
    if settings.url is None:
        report = report_file_tool(client, settings.home / REPORTS)
        shared = tuple(report if tool.name == report.name else tool for tool in TOOLS)
    return (*shared, *local_tools(client))


async def serve(url: str | None, timeout_s: float | None) -> None:
    """Serve until standard input ends."""
    from mcp.server.stdio import stdio_server

    from .server import make_server

    settings = resolve_settings(url, timeout_s=timeout_s)
    with Client(url, timeout_s=timeout_s) as client:
        server = make_server(tools_of(settings, client), requests_of(settings))
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
