"""The errors of the builder: each is an `InvalidGraphError` and also the corresponding Python exception."""

from __future__ import annotations

from ..errors import InvalidGraphError


class OperandError(InvalidGraphError, TypeError):
    """An argument is of another type than the function takes."""


class UnknownNameError(InvalidGraphError, AttributeError):
    """A tensor, a builder or this package has nothing of that name."""
