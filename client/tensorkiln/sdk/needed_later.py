"""What an answer is read by, and what runs a program: imported while a service starts."""

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
"""What `httpx2` imports when it connects, as it is now."""


@cache
def load_early() -> None:
    """Import all of it."""
    with uncollected():
        for name in _NAMES:
            import_module(name, __package__)
        for name in _FOR_A_FIRST_REQUEST:
            with suppress(ImportError):
                import_module(name)
