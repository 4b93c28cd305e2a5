"""Modules that read an answer and run a program, imported while a service starts."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Final

from ..uncollected import uncollected

_NAMES: Final = (
    *("..connections", ".answers", "..program", "..trust.connected", "..runtime.executor", "..bundle", "..tasks"),
    "cryptography.hazmat.primitives.asymmetric.ed25519",
)
_FOR_A_FIRST_REQUEST: Final = ("httpcore2", "anyio._backends._asyncio")
"""Modules that `httpx2` imports at its first connection; they may differ in another version."""


@cache
def load_early() -> None:
    """Import the modules."""
    with uncollected():
        for name in _NAMES:
            import_module(name, __package__)
        for name in _FOR_A_FIRST_REQUEST:
            with suppress(ImportError):
                import_module(name)
