"""`kiln serve`: run the compile service in the foreground."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from ..compiler_build import SERVER
from ..errors import UnavailableError
from .report import reported


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8080,
    uds: Annotated[str | None, typer.Option(help="Listen on this Unix socket instead of a port.")] = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Number of processes that answer requests.")] = 1,
) -> None:
    """Run the compile service in the foreground, until Ctrl-C.

    All other settings are environment variables named KILN_*, listed in the manual under Operations.
    """
    with reported():
        if sys.platform != "linux":
            raise UnavailableError(f"The compile service runs on Linux, and this system is {sys.platform}.")
        if find_spec(SERVER) is None:
            raise UnavailableError("No compile service is installed here; run `pip install tensorkiln-server`.")
    where = ["--uds", uds] if uds is not None else ["--host", host, "--port", str(port)]
    os.execv(sys.executable, [sys.executable, "-P", "-m", SERVER, "--workers", str(workers), *where])
