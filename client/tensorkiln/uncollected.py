"""Imports without garbage collection, which saves a tenth of the run time of a short program."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None]:
    """Disable garbage collection in the block, unless the program has disabled it itself.

    Imports create a hundred thousand objects and no garbage, so collections during them find nothing. After an import
    all objects move to the oldest generation, which only a full collection scans.
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
    """Move all objects to the oldest generation, unless the program has frozen some, which this would unfreeze."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
