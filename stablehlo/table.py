"""The type of the translators of operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from .op import Op
from .value import Value

Translator: TypeAlias = "Callable[[Op], Value | Sequence[Value]]"
"""Translates an operation and returns the values of its results."""
