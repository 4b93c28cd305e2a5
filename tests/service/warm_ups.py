"""Warm-ups for fork servers of the tests."""

from __future__ import annotations

import threading

from tensorkiln.errors import DiagnosticError

HELD_MIB = 96
_held: list[bytes] = []


def refuse() -> None:
    raise DiagnosticError("no such pass")


def leave_a_thread() -> None:
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def grow() -> None:
    """Hold HELD_MIB of memory that is resident."""
    _held.append(b"x" * (HELD_MIB << 20))
