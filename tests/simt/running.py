"""A launch that has been checked, handed to the runtime."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from random import Random

from .launch import Geometry
from .native import Launch, Report, SharedArray, native
from .spans import Span
from .stacks import STACK_BYTES, stacks


@dataclass(frozen=True, slots=True)
class Running:
    """`kernel` is the address of code that takes the address of `values`, the arguments, 8 bytes each."""

    kernel: int
    suspends: bool
    geometry: Geometry
    values: bytes
    shared: Sequence[Span]
    seed: int


def run(what: Running) -> Report | None:
    """Run it; the report when it did not come to its end, valid until the next launch. One at a time in a process."""
    arguments = ctypes.create_string_buffer(what.values, max(len(what.values), 8))
    arrays = (SharedArray * len(what.shared))(*(SharedArray(span.address, span.size) for span in what.shared))
    numbers, blocks = Random(what.seed), what.geometry.blocks
    launch = Launch(
        kernel=what.kernel,
        arguments=ctypes.addressof(arguments),
        stacks=stacks().address,
        stack_bytes=STACK_BYTES,
        blocks=blocks,
        start=numbers.randrange(blocks),
        step=_coprime(numbers, blocks),
        shared=ctypes.addressof(arrays),
        shared_count=len(arrays),
        threads=what.geometry.threads,
        suspends=what.suspends,
        block=what.geometry.block,
        grid=what.geometry.grid,
    )
    runtime = native()
    return runtime.report if runtime.run(launch, numbers.getrandbits(64) | 1) else None


def _coprime(numbers: Random, count: int) -> int:
    """A step that visits every one of `count` places."""
    while True:
        step = numbers.randrange(1, count + 1)
        if gcd(step, count) == 1:
            return step
