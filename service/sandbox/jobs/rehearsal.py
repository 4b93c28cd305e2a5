"""The warm-up of a fork server that compiles: the compiler, and what is read and written around it."""

from __future__ import annotations

from . import reading


def rehearse() -> None:
    """Compile, read a request, and write its answer, so that no job is the first in its process to do so."""
    # Imported here, so that a sandbox without the compiler can import the other jobs.
    from passes.warm_up import warm_up

    warm_up()
    reading.rehearse()
