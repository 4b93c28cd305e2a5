"""Strategies to run a kernel on a kind of target, and the choice of the fastest candidate."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from dialect.mlir import ir
from tensorkiln.schedule import KernelItem

from .loops.body import KernelBody
from .loops.scatter import is_scatter
from .plan.in_place import Reuse
from .schedule.attach import attach_schedules
from .schedule.choice import Candidate, Choice, Offer
from .schedule.cost import Evaluate, Machine, at_typical, at_upper_bounds
from .schedule.panels import Tiling

Problem = TypeVar("Problem")
M = TypeVar("M")
Costed = TypeVar("Costed", bound=Machine)
Frame = TypeVar("Frame")


UNMEASURED: Final[Mapping[str, float]] = MappingProxyType({})
MARGIN: Final = 0.95
"""Another candidate must take less than this share of the first one's time: estimates are no more accurate."""


@dataclass(frozen=True, slots=True)
class Strategy(Generic[Problem, M, Frame]):
    """A way to run kernels: `find` matches a kernel, `candidates` are ways to run it, `realise` emits the picked one.

    `find` returns None for a kernel that it does not match. The most promising candidate comes first. `tilings` gives
    packed layouts for parameters. `find` depends on the body alone: it runs once, and its result serves for scheduling
    and emission. `version` counts changes of the code emitted for the same record; times measured with another version
    do not count. A strategy runs `scatters` alone, no scatter, or kernels of both sorts (None).
    """

    find: Callable[[KernelBody], Problem | None]
    candidates: Callable[[Problem, M], Iterable[Choice]]
    realise: Callable[[Problem, KernelItem, Frame], None]
    tilings: Callable[[KernelBody, Problem, M], Sequence[Tiling]] = lambda *_: ()
    version: int = 1
    scatters: bool | None = False

    def emit(self, body: KernelBody, item: KernelItem, frame: Frame) -> None:
        """Emit a kernel with this strategy, which was picked for it."""
        problem = body.once(self.find)
        assert problem is not None, "the strategy was picked for this kernel"
        with body.apart():
            self.realise(problem, item, frame)


Strategies = Mapping[str, Strategy[Any, M, Frame]]


def every(body: KernelBody) -> KernelBody:
    """Match every kernel."""
    return body


def matching(strategies: Strategies[M, Frame], body: KernelBody) -> list[tuple[Strategy[Any, M, Frame], Any]]:
    """The strategies that can run a kernel, in order, and what each has found in it."""
    sorts = (is_scatter(body), None)
    asked = [strategy for strategy in strategies.values() if strategy.scatters in sorts]
    return [(each, problem) for each in asked if (problem := body.once(each.find)) is not None]


@dataclass(frozen=True, slots=True)
class Picker(Generic[Costed, Frame]):
    """Picks, for a kernel, the candidate that takes the least time on `machine` at typical sizes.

    `measured` has times in nanoseconds by candidate key. They are never compared with estimates: if a candidate of a
    kernel was measured, only measured ones are picked.
    """

    strategies: Strategies[Costed, Frame]
    machine: Costed
    measured: Mapping[str, float] = field(default_factory=lambda: UNMEASURED)

    def __call__(self, body: KernelBody) -> Offer:
        """The candidates of a kernel, and the pick.

        It is the first candidate of the first strategy that can run the kernel, unless another is faster by a margin.
        """
        found = matching(self.strategies, body)
        symbols = body.function.symbols
        typical, most = at_typical(symbols, loops=body.extents), at_upper_bounds(symbols)
        choices: list[Choice] = []
        offered: list[Candidate] = []
        with body.apart():
            for strategy, problem in found:
                for choice in strategy.candidates(problem, self.machine):
                    choices.append(choice)
                    key = self._key(body.text, strategy, choice)
                    offered.append(Candidate(key, choice.strategy, self._nanoseconds(choice, typical)))
            assert offered, "the last strategy of a table runs every kernel"
            is_measured = any(each.key in self.measured for each in offered)
            times = [self.measured.get(each.key, math.inf if is_measured else each.estimate_ns) for each in offered]
            picked = min(range(len(times)), key=lambda at: times[at] * (MARGIN if at == 0 else 1.0))
            choice = choices[picked]
            updating = choice if choice.updating is None else replace(choice, cost=choice.updating)
            times_at_most = (self._nanoseconds(each, most) for each in (choice, updating))
            return Offer(choice, picked, tuple(offered), *times_at_most)

    def _nanoseconds(self, choice: Choice, at: Evaluate) -> float:
        return self.machine.nanoseconds(choice.cost(at), choice.item, at)

    def _key(self, kernel: str, strategy: Strategy[Any, Costed, Frame], choice: Choice) -> str:
        item = choice.item.model_copy(update={"kernel_name": ""}).model_dump_json()
        parts = (kernel, self.machine.key, choice.strategy, str(strategy.version), item)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def schedule(module: ir.Module, picker: Picker[Costed, Frame], reuse: Reuse | None) -> ir.Module:
    """Pick a schedule for every kernel and write it on its function.

    `reuse` is the promise of the strategies that allows a kernel to compute in place; with None no kernel does.
    """
    attach_schedules(module, picker, reuse)
    return module
