"""Targets as commands have them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_KINDS: Final = {"sm_": "cuda:", "gfx": "rocm:", "x86-64": "cpu:", "aarch64": "cpu:"}


def full_name(text: str) -> str:
    """A target by its name, or by the part of it that says enough."""
    name = text.strip()
    prefix = next((kind for begin, kind in _KINDS.items() if name.startswith(begin)), "")
    return prefix + name


def full_names(texts: Iterable[str]) -> tuple[str, ...]:
    """The targets in texts with commas between them, each once."""
    return tuple(dict.fromkeys(full_name(name) for text in texts for name in text.split(",") if name.strip()))
