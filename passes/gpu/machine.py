"""What the schedules need to know of a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from passes.scalar.traits import Traits, traits_of
from tensorkiln.target import Target

WARP: Final = 32
"""Threads that run in lock step and exchange registers, on every CUDA architecture."""
VECTOR_BYTES: Final = 16
"""Bytes of the widest load and store of one thread."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A GPU as the schedules and the scalar code see it."""

    traits: Traits


def machine_of(target: Target, *, fast_math: bool = False) -> Machine:
    """What is known of a CUDA target."""
    return Machine(traits_of(target, fast_math=fast_math))
