"""What a table of translators holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from .op import Op
from .value import Value

Translator: TypeAlias = "Callable[[Op], Value | Sequence[Value]]"
"""The results of an operation, as values."""
