"""The builder as the first argument of a function."""

from __future__ import annotations

from ..nearest import kind_of
from .mistakes import OperandError


def require_builder(value: object, operation: str) -> None:
    """OperandError for a value that is not a builder, such as a shape."""
    from .builder import Builder

    if not isinstance(value, Builder):
        raise OperandError(f"{operation} takes the builder first, as in {operation}(builder, …), not {kind_of(value)}")
