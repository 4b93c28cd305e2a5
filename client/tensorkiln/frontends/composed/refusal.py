"""The default way to refuse an unsupported case; importers pass their own, to add context to the message."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeAlias

from ...errors import UnsupportedGraphError

Refusal: TypeAlias = "Callable[[str], NoReturn]"


def unsupported(message: str) -> NoReturn:
    """Raise UnsupportedGraphError with the message alone."""
    raise UnsupportedGraphError(message)
