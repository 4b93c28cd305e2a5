"""tensorkiln: write, validate, compile and run tensor graphs.

The names below are imported on first use: `import tensorkiln.graph` loads no HTTP client and no object loader.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graph import Graph as Graph
    from .program import Program as Program
    from .sdk.async_client import AsyncClient as AsyncClient
    from .sdk.client import Client as Client
    from .target import Target as Target

_HOMES = {
    "AsyncClient": ".sdk.async_client",
    "Client": ".sdk.client",
    "Graph": ".graph",
    "Program": ".program",
    "Target": ".target",
}

__all__ = ["AsyncClient", "Client", "Graph", "Program", "Target"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
