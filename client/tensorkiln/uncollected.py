"""Imports without a look for garbage in between, which is a tenth of what a short program takes."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None]:
    """Have nothing collected in the block, where the program has not seen to that itself.

    Imports make a hundred thousand objects and no garbage; to look through them over and over finds nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
