"""Imports without a look for garbage in between, nor one at them soon after: a tenth of what a short program takes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None]:
    """Have nothing collected in the block, where the program has not seen to that itself.

    Imports make a hundred thousand objects and no garbage; to look through them over and over finds nothing. What there
    is after an import counts as old, so that only a full collection looks at it.
    """
    was_enabled, imported = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if len(sys.modules) > imported:
                _age()
            gc.enable()


def _age() -> None:
    """Make all objects old, unless the program has frozen some: what is thawed is no longer frozen."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
