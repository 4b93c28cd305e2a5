"""Imports without a look for garbage in between, nor one at them soon after: a tenth of what a short program takes."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None]:
    """Have nothing collected in the block, where the program has not seen to that itself.

    Imports make a hundred thousand objects and no garbage; to look through them over and over finds nothing. What there
    is afterwards counts as old, so that only a full collection looks at it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            _age()
            gc.enable()


def _age() -> None:
    """Make all objects old, unless the program has frozen some: what is thawed is no longer frozen."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
