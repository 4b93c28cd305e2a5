"""The tool `report` of `kiln mcp` with an embedded service: no browser can reach that, so the page becomes a file."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ..errors import UnavailableError
from ..sdk import Client
from ..whole_file import whole_file
from .tool import Arguments, Requests, Result, Tool


def report_file_tool(client: Client, folder: Path) -> Tool:
    """A tool that writes reports of programs stored in the service of `client` to `folder`, named by digest.

    The tool raises NotFoundError for a program that is not stored, UnavailableError when the file cannot be written.
    """

    async def report(requests: Requests, arguments: Arguments) -> Result:
        return await asyncio.to_thread(_report, client, folder, arguments)

    return Tool(
        "report",
        "Write an HTML page for people: kernels, schedule, memory and IR of a program, or of two compared. Returns the "
        "path of the file.",
        ("digest", "against"),
        ("digest",),
        report,
    )


def _report(client: Client, folder: Path, arguments: Arguments) -> Result:
    digests = [arguments[name] for name in ("digest", "against") if name in arguments]
    first, *others = [client.report(digest) for digest in digests]
    path = folder / f"{'-'.join(digests)}.html"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(first.html(*others).encode())
    except OSError as error:
        raise UnavailableError(
            f"The report cannot be written to {folder}: {error.strerror}; choose another folder by KILN_HOME."
        ) from None
    return {"file": str(path.absolute()), "media_type": "text/html"}
