"""How a composition says what it does not do, so that an importer can add whom it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeAlias

from ...errors import UnsupportedGraphError

Refusal: TypeAlias = "Callable[[str], NoReturn]"


def unsupported(message: str) -> NoReturn:
    """UnsupportedGraphError with nothing but the message."""
    raise UnsupportedGraphError(message)
