"""tensorkiln: write, validate, compile and run tensor graphs.

The names below are imported on first use: `import tensorkiln.graph` loads no HTTP client and no object loader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .on_first_use import on_first_use

if TYPE_CHECKING:
    from .graph import Graph as Graph
    from .program import Program as Program
    from .sdk.async_client import AsyncClient as AsyncClient
    from .sdk.client import Client as Client
    from .target import Target as Target

__getattr__ = on_first_use(
    __name__,
    {
        "sdk.async_client": "AsyncClient",
        "sdk.client": "Client",
        "graph": "Graph",
        "program": "Program",
        "target": "Target",
    },
)

__all__ = ["AsyncClient", "Client", "Graph", "Program", "Target"]
