"""The ways to run a kernel on some kind of target: a table by name, in order of preference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from dialect.mlir import ir
from passes.schedule.attach import attach_schedules
from passes.schedule.choice import Choice
from passes.schedule.in_place import Reuse
from passes.schedule.stages import KernelBody
from tensorkiln.schedule import KernelItem

Machine = TypeVar("Machine")
Frame = TypeVar("Frame")


@dataclass(frozen=True, slots=True)
class Strategy(Generic[Machine, Frame]):
    """`matches` says whether it can run a body, `choose` decides how, `realise` emits what was decided."""

    matches: Callable[[KernelBody], bool]
    choose: Callable[[KernelBody, Machine], Choice]
    realise: Callable[[KernelBody, KernelItem, Frame], None]


def schedule(
    module: ir.Module, strategies: Mapping[str, Strategy[Machine, Frame]], machine: Machine, reuse: Reuse
) -> ir.Module:
    """Have the first strategy that can run a kernel choose how; the choice is written on the kernel's function.

    `reuse` is what the strategies allow a kernel to compute in place.
    """

    def choose(body: KernelBody) -> Choice:
        strategy = next(strategy for strategy in strategies.values() if strategy.matches(body))
        return strategy.choose(body, machine)

    attach_schedules(module, choose, reuse)
    return module
