"""Targets on the command line."""

from __future__ import annotations

from collections.abc import Iterable

from ..target_names import full_name


def full_names(texts: Iterable[str]) -> tuple[str, ...]:
    """The full names of comma-separated targets, without duplicates."""
    return tuple(dict.fromkeys(full_name(name) for text in texts for name in text.split(",") if name.strip()))
