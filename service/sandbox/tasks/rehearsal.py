"""The warm-up of a fork server that compiles: the compiler, and what is read and written around it."""

from __future__ import annotations

from importlib import import_module

import passes
import stablehlo
from passes.warm_up import warm_up

from . import reading


def rehearse() -> None:
    """Compile, read a request, and write its answer, so that no task is the first in its process to do so."""
    warm_up()
    reading.rehearse()


def load_the_rest() -> None:
    """Import the GPU back end, a tenth of the compiler, and the StableHLO translator: most requests need neither."""
    import_module(f"{passes.__name__}.gpu_back_end")
    import_module(f"{stablehlo.__name__}.translate")
