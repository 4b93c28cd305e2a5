"""Positions in the text, and errors that state them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from ..errors import InvalidGraphError, TensorkilnError

Error = TypeVar("Error", bound=TensorkilnError)
_SHOWN = 300
"""The most characters of a Python exception's text in a message."""


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the text; both numbers count from 1, columns in characters."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"

    def error(self, message: str, kind: type[Error] = InvalidGraphError) -> Error:
        """An error with this place in its message and in its details."""
        return kind(f"{self}: {message}", details={"line": self.line, "column": self.column})

    def located(self, error: TensorkilnError) -> TensorkilnError:
        """The error with this place instead of its pointers, which refer to nodes."""
        details = {**error.details, "line": self.line, "column": self.column}
        return type(error)(f"{self}: {error.message}", details=details)


def shortened(reason: object) -> str:
    """The text of an exception, in one line of limited length."""
    text = " ".join(str(reason).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
