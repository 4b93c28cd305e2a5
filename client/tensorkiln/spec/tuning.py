"""Measured times of a program's candidate schedules, and the choice made from them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from ..limits import SHA256_PATTERN
from ..nodes.base import Record

Nanoseconds = Annotated[int, Field(ge=0, le=(1 << 63) - 1)]
MOST_KERNELS, MOST_CANDIDATES = 1 << 16, 64


class Timing(Record):
    """A schedule of one kernel. All times are in nanoseconds of one call of the program.

    `key` stands for the kernel, the machine, the strategy with its version, and what it decided. `estimate_ns` is what
    the compiler expected; `least_ns`, `median_ns` and `spread_ns` (between the quartiles) are of the measured rounds.
    """

    key: str = Field(pattern=SHA256_PATTERN)
    strategy: str = Field(max_length=64)
    estimate_ns: Nanoseconds
    least_ns: Nanoseconds
    median_ns: Nanoseconds
    spread_ns: Nanoseconds


class TunedKernel(Record):
    """A kernel with more than one schedule: `kernel` is its `kernel_id`, the first one of those that are equal.

    The first candidate is the one that is picked without measurements; `picked` is the position of the one that is
    picked by them.
    """

    kernel: int = Field(ge=0)
    picked: int = Field(ge=0)
    candidates: tuple[Timing, ...] = Field(min_length=2, max_length=MOST_CANDIDATES)

    @model_validator(mode="after")
    def _picks_a_candidate(self) -> TunedKernel:
        if self.picked >= len(self.candidates):
            raise ValueError(f"candidate {self.picked} is picked of {len(self.candidates)}")
        return self


class Tuning(Record):
    """Candidates of a program's kernels, timed by turns on one thread.

    `machine` is the CPU, as LLVM calls it; `sizes` are those of the program's symbols, in their order. `before_ns` is
    the least time of a call with the schedules that are picked without measurements, `after_ns` with those picked by
    them; both are 0 where these are the same. Without a `gain` the former stay.
    """

    machine: str = Field(max_length=64)
    sizes: tuple[int, ...] = ()
    rounds: int = Field(ge=0, le=1 << 20)
    before_ns: Nanoseconds = 0
    after_ns: Nanoseconds = 0
    gain: bool = False
    kernels: tuple[TunedKernel, ...] = Field(default=(), max_length=MOST_KERNELS)

    @property
    def faster(self) -> dict[str, float]:
        """Nanoseconds by the keys of the candidates that were faster than those picked without measurements."""
        picked = (kernel.candidates[kernel.picked] for kernel in self.kernels if kernel.picked)
        return {timing.key: float(timing.least_ns) for timing in picked}

    @property
    def measured(self) -> dict[str, float]:
        """Times for picking schedules: `faster` when it makes a call of the program faster, else empty."""
        return self.faster if self.gain else {}
