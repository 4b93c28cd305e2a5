"""Caches per MLIR context that live as long as the context."""

from __future__ import annotations

from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from .mlir import ir

K = TypeVar("K")
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """A dictionary for each context.

    Neither keys nor values may hold objects of a context, which would keep it alive from its own entry. The hash of a
    type or an attribute is its address in its context, and is unique as long as the context lives.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[ir.Context, dict[K, V]] = WeakKeyDictionary()

    def within(self, context: ir.Context) -> dict[K, V]:
        """The cache of `context`, to read and add to."""
        known = self._known.get(context)
        return self._known.setdefault(context, {}) if known is None else known
