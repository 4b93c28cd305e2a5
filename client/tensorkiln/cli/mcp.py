"""`kiln mcp`: the compiler as tools of the Model Context Protocol."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec

from ..errors import RequestError
from .options import TimeoutS, Url
from .report import reported


def mcp(url: Url = None, timeout: TimeoutS = None) -> None:
    """Serve tools for assistants over standard input and output: compile, validate, run and others.

    It uses the service at --url or KILN_URL, with the key KILN_API_KEY; without a URL, an embedded service.
    """
    with reported():
        if find_spec("mcp") is None:
            raise RequestError("kiln mcp needs the package mcp: run `pip install 'tensorkiln[cli,cpu,mcp]'`.")
    from ..mcp.stdio import serve

    asyncio.run(serve(url, timeout))
