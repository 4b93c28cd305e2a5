"""What is known of the types, attributes and texts of a context, for as long as the context lives."""

from __future__ import annotations

from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from .mlir import ir

K = TypeVar("K")
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """A dictionary for each context.

    Neither keys nor values may hold what belongs to a context, which would keep it alive from its own entry. The hash
    of a type or an attribute is the address of what is one in its context, and lives as long as that.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[ir.Context, dict[K, V]] = WeakKeyDictionary()

    def within(self, context: ir.Context) -> dict[K, V]:
        """What is known in `context`, to be read and added to."""
        known = self._known.get(context)
        return self._known.setdefault(context, {}) if known is None else known
