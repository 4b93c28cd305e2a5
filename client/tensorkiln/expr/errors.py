"""Errors of expressions."""

from __future__ import annotations

from typing import Final


class ExprError(ValueError):
    """An expression that cannot be built or has no value; the message says why."""


class ExprLimitError(ExprError):
    """An expression beyond a published limit: its name, the maximum and the actual value."""

    def __init__(self, limit: str, maximum: int, actual: int) -> None:
        counted = "levels" if limit == "expression_depth" else "terms"
        super().__init__(f"an expression has {actual} {counted}; the limit {limit} is {maximum}")
        self.limit: Final = limit
        self.maximum: Final = maximum
        self.actual: Final = actual
