"""What an answer is read by, and what runs a program: imported while a service starts."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from ..uncollected import uncollected

_NAMES: Final = (
    *("..connections", ".answers", "..program", "..trust.connected", "..runtime.executor"),
    "cryptography.hazmat.primitives.asymmetric.ed25519",
)


def load_early() -> None:
    """Import all of it."""
    with uncollected():
        for name in _NAMES:
            import_module(name, __package__)
