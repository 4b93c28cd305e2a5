"""Safe reading of untrusted FlatBuffer tables: nothing outside the buffer is read.

The layout is that of https://flatbuffers.dev/internals. The `flatbuffers` package decodes it; this module checks that
offsets, texts and lists are within the buffer, and limits the total amount read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from flatbuffers import number_types
from flatbuffers.table import Table as Layout

from ...errors import InvalidGraphError, LimitExceededError

MOST_TABLES: Final = 200_000
"""The most tables and texts read from one file; a tree may refer to one part many times."""
MOST_TEXT_BYTES: Final = 16 << 20
"""The most bytes of text read from one file; many texts may share one place."""

_MOST_DEPTH: Final = 64
_BROKEN: Final = (struct.error, IndexError, ValueError, TypeError, OverflowError)
_WIDTH: Final = 4
T = TypeVar("T")


@dataclass(slots=True)
class Budget:
    """The number of tables and texts, and the bytes of text, that may still be read."""

    left: int = MOST_TABLES
    text_bytes: int = MOST_TEXT_BYTES

    def take_text(self, length: int) -> None:
        """Count one text of `length` bytes. LimitExceededError when the budget is exhausted."""
        self.take()
        self.text_bytes -= length
        if self.text_bytes < 0:
            raise LimitExceededError(
                f"The texts of the exported function have more than {MOST_TEXT_BYTES} bytes, each counted as often as "
                "it is named; use shorter names.",
                limit="text_bytes",
                maximum=MOST_TEXT_BYTES,
                actual=MOST_TEXT_BYTES - self.text_bytes,
            )

    def take(self) -> None:
        """Count one table or text. LimitExceededError when the budget is exhausted."""
        self.left -= 1
        if self.left < 0:
            raise LimitExceededError(
                f"The exported function has more than {MOST_TABLES} tables and texts; split it into several.",
                limit="tables",
                maximum=MOST_TABLES,
                actual=MOST_TABLES + 1,
            )


@dataclass(frozen=True, slots=True)
class FlatTable:
    """A table at byte `place` of `content`. Its fields are numbered as in the schema, from 0.

    Every method raises InvalidGraphError for malformed bytes.
    """

    content: bytes
    place: int
    depth: int = 0
    budget: Budget = field(default_factory=Budget)

    @staticmethod
    def root(content: bytes) -> FlatTable:
        """The root table of the file."""
        start = _checked(lambda: Layout(content, 0).Get(number_types.UOffsetTFlags, 0))
        return FlatTable(content, start)

    def number(self, slot: int, flags: Any, default: int = 0) -> int:
        """A number of the type `flags`; `default` where the field is absent."""
        at = self._field(slot)
        return default if at is None else int(_checked(lambda: self._layout.Get(flags, self.place + at)))

    def text(self, slot: int) -> str:
        """A text; empty where the field is absent."""
        at = self._field(slot)
        return "" if at is None else self._text_at(self.place + at)

    def table(self, slot: int) -> FlatTable | None:
        """A table; None where the field is absent."""
        at = self._field(slot)
        return None if at is None else self._table_at(self.place + at)

    def tables(self, slot: int) -> list[FlatTable]:
        """The tables of a list."""
        return [self._table_at(place) for place in self._places(slot)]

    def texts(self, slot: int) -> list[str]:
        """The texts of a list."""
        return [self._text_at(place) for place in self._places(slot)]

    def count(self, slot: int, flags: Any = number_types.UOffsetTFlags) -> int:
        """The number of entries of a list: tables, texts, or numbers of the type `flags`."""
        return self._vector(slot, flags.bytewidth)[1]

    def numbers(self, slot: int, flags: Any) -> list[int]:
        """The numbers of a list, of the type `flags`."""
        start, length = self._vector(slot, flags.bytewidth)
        layout = self._layout
        return [int(layout.Get(flags, start + index * flags.bytewidth)) for index in range(length)]

    def bytes(self, slot: int) -> bytes:
        """A list of bytes."""
        start, length = self._vector(slot, 1)
        return self.content[start : start + length]

    @property
    def _layout(self) -> Any:
        return Layout(self.content, self.place)

    def _field(self, slot: int) -> int | None:
        """The offset of a field in the table; None where it is absent."""
        return _checked(lambda: self._layout.Offset(_WIDTH + 2 * slot)) or None

    def _table_at(self, place: int) -> FlatTable:
        self.budget.take()
        if self.depth == _MOST_DEPTH:
            raise LimitExceededError(
                f"The exported function has tables nested more than {_MOST_DEPTH} deep.",
                limit="table_depth",
                maximum=_MOST_DEPTH,
                actual=_MOST_DEPTH + 1,
            )
        return FlatTable(self.content, _checked(lambda: self._layout.Indirect(place)), self.depth + 1, self.budget)

    def _text_at(self, place: int) -> str:
        start = _checked(lambda: self._layout.Indirect(place))
        length = self._length(start, 1)
        self.budget.take_text(length)
        try:
            return self.content[start + _WIDTH : start + _WIDTH + length].decode()
        except UnicodeDecodeError:
            raise _damaged("a text is not UTF-8") from None

    def _places(self, slot: int) -> range:
        start, length = self._vector(slot, _WIDTH)
        return range(start, start + length * _WIDTH, _WIDTH)

    def _vector(self, slot: int, width: int) -> tuple[int, int]:
        at = self._field(slot)
        if at is None:
            return 0, 0
        start = _checked(lambda: self._layout.Indirect(self.place + at))
        return start + _WIDTH, self._length(start, width)

    def _length(self, start: int, width: int) -> int:
        length = int(_checked(lambda: self._layout.Get(number_types.UOffsetTFlags, start)))
        if start + _WIDTH + length * width > len(self.content):
            raise _damaged(f"a list of {length} entries does not fit in the file's {len(self.content)} bytes")
        return length


def _checked(read: Callable[[], T]) -> T:
    try:
        return read()
    except _BROKEN:
        raise _damaged("a place lies outside the file") from None


def _damaged(why: str) -> InvalidGraphError:
    return InvalidGraphError(f"These bytes are not a function serialized by jax.export, or they are damaged: {why}.")
