"""A program at one binding of its symbols: every size, offset and launch known, ready to run any number of times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..expr import evaluate
from .address import Address
from .arena import Interval, plan_arena
from .arguments import InputSpec
from .loaded import LoadedProgram
from .placement import Placement
from .planning import plan_steps
from .steps import CallbackStep, KernelStep, Step
from .storage import StorageKind, end_of


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """A result. Fresh results are written by the kernels at their first byte; the others are copied from `source`.

    `size` is the bytes to allocate.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    size: int
    source: Address
    is_fresh: bool


@dataclass(frozen=True, eq=False)
class Plan:
    """`block_size` bytes hold the arena and the scratch of each worker; `inputs` are the free ones, in call order."""

    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    steps: tuple[Step, ...]
    block_size: int
    scratch_start: int
    scratch_size: int

    @property
    def planned_bytes(self) -> int:
        """Bytes that a call allocates: arena, scratch, results, and what host callbacks return before it is copied."""
        callbacks = max((step.output.nbytes for step in self.steps if isinstance(step, CallbackStep)), default=0)
        return self.block_size + sum(output.size for output in self.outputs) + callbacks


def make_plan(
    loaded: LoadedProgram,
    inputs: tuple[InputSpec, ...],
    resident: Mapping[int, int],
    symbols: Mapping[str, int],
    threads: int,
) -> Plan:
    """The plan at `symbols` for up to `threads` threads; `resident` are the addresses of fixed inputs by buffer id."""
    claims = _claims(loaded, symbols)
    arena = plan_arena(_intervals(loaded, "writable", symbols, claims))
    scratch = plan_arena(_intervals(loaded, "scratch", symbols, claims))
    free = {spec.var: position for position, spec in enumerate(inputs)}
    placement = Placement(loaded, symbols, arena.offsets, scratch.offsets, claims, resident, free)
    steps = plan_steps(loaded, placement, threads)
    workers = max((len(step.ranges) for step in steps if isinstance(step, KernelStep)), default=1)
    return Plan(
        inputs=inputs,
        outputs=_outputs(loaded, placement, claims),
        steps=steps,
        block_size=arena.size + workers * scratch.size,
        scratch_start=arena.size,
        scratch_size=scratch.size,
    )


def _intervals(
    loaded: LoadedProgram, kind: StorageKind, symbols: Mapping[str, int], claims: Mapping[int, int]
) -> list[Interval]:
    return [
        Interval(key, storage.extent(symbols), storage.first, storage.last)
        for key, storage in enumerate(loaded.storages)
        if storage.kind == kind and key not in claims
    ]


def _claims(loaded: LoadedProgram, symbols: Mapping[str, int]) -> dict[int, int]:
    """For each storage that becomes a result as it is, the position of that result: the first that covers all of it."""
    claims: dict[int, int] = {}
    for position, binding in enumerate(loaded.program.outputs):
        key = loaded.storage_of[binding.buffer]
        storage, buffer = loaded.storages[key], loaded.program.buffers[binding.buffer]
        covers = evaluate(buffer.offset, symbols) == 0 and end_of(buffer, symbols) == storage.extent(symbols)
        if storage.kind == "writable" and covers:
            claims.setdefault(key, position)
    return claims


def _outputs(loaded: LoadedProgram, placement: Placement, claims: Mapping[int, int]) -> tuple[OutputSpec, ...]:
    specs: list[OutputSpec] = []
    for position, binding in enumerate(loaded.program.outputs):
        window = placement.window(binding.buffer)
        is_fresh = claims.get(loaded.storage_of[binding.buffer]) == position
        size = placement.extent(binding.buffer) if is_fresh else window.nbytes
        specs.append(OutputSpec(window.dtype, window.shape, size, window.address, is_fresh))
    return tuple(specs)
