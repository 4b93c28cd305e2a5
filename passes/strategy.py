"""The ways to run a kernel on some kind of target: a table by name, in order of preference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dialect.mlir import ir
from passes.schedule.attach import attach_schedules
from passes.schedule.choice import Choice
from passes.schedule.panels import Tiling
from tensorkiln.schedule import KernelItem

from .loops.body import KernelBody
from .plan.in_place import Reuse

Problem = TypeVar("Problem")
Machine = TypeVar("Machine")
Frame = TypeVar("Frame")


@dataclass(frozen=True, slots=True)
class Strategy(Generic[Problem, Machine, Frame]):
    """`find` sees in a body what the strategy can run, or None; `choose` decides how; `realise` emits what it decided.

    `tilings` says how it would have arguments packed that are the same at every call. What is found depends on the body
    alone, so that it is the same when a kernel is scheduled and when it is emitted.
    """

    find: Callable[[KernelBody], Problem | None]
    choose: Callable[[Problem, Machine], Choice]
    realise: Callable[[Problem, KernelItem, Frame], None]
    tilings: Callable[[KernelBody, Machine], Sequence[Tiling]] = lambda *_: ()

    def emit(self, body: KernelBody, item: KernelItem, frame: Frame) -> None:
        """Emit a kernel that this strategy was chosen for."""
        problem = self.find(body)
        assert problem is not None, "the strategy was chosen for this kernel"
        self.realise(problem, item, frame)


Strategies = Mapping[str, Strategy[Any, Machine, Frame]]


def schedule(
    module: ir.Module, strategies: Strategies[Machine, Frame], machine: Machine, reuse: Reuse | None
) -> ir.Module:
    """Have the first strategy that can run a kernel choose how; the choice is written on the kernel's function.

    `reuse` is what the strategies allow a kernel to compute in place; None is nothing.
    """

    def choose(body: KernelBody) -> Choice:
        for strategy in strategies.values():
            problem = strategy.find(body)
            if problem is not None:
                return strategy.choose(problem, machine)
        raise AssertionError("the last strategy of a table runs every kernel")

    attach_schedules(module, choose, reuse)
    return module
