"""The ways to run a kernel on some kind of target, and how the cheapest of them is picked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from dialect.mlir import ir
from tensorkiln.schedule import KernelItem

from .loops.body import KernelBody
from .plan.in_place import Reuse
from .schedule.attach import attach_schedules
from .schedule.choice import Candidate, Choice, Offer
from .schedule.cost import Machine, at_typical
from .schedule.panels import Tiling

Problem = TypeVar("Problem")
M = TypeVar("M")
Costed = TypeVar("Costed", bound=Machine)
Frame = TypeVar("Frame")


UNMEASURED: Final[Mapping[str, float]] = MappingProxyType({})
MARGIN: Final = 0.95
"""Of the time of the candidate that is expected to be the fastest: estimates are no better than that."""


@dataclass(frozen=True, slots=True)
class Strategy(Generic[Problem, M, Frame]):
    """`find` sees in a body what the strategy can run, or None; `candidates` are the ways in which it could, the one to
    be expected first; `realise` emits the one that was picked.

    `tilings` says how it would have arguments packed that are the same at every call. What is found depends on the body
    alone, so that it is the same when a kernel is scheduled and when it is emitted. `version` counts changes of what is
    emitted for the same record: a time that was measured of another version says nothing.
    """

    find: Callable[[KernelBody], Problem | None]
    candidates: Callable[[Problem, M], Iterable[Choice]]
    realise: Callable[[Problem, KernelItem, Frame], None]
    tilings: Callable[[KernelBody, Problem, M], Sequence[Tiling]] = lambda *_: ()
    version: int = 1

    def emit(self, body: KernelBody, item: KernelItem, frame: Frame) -> None:
        """Emit a kernel that this strategy was picked for."""
        problem = self.find(body)
        assert problem is not None, "the strategy was picked for this kernel"
        self.realise(problem, item, frame)


Strategies = Mapping[str, Strategy[Any, M, Frame]]


@dataclass(frozen=True, slots=True)
class Picker(Generic[Costed, Frame]):
    """Picks, for a kernel, the candidate that takes the least time on `machine` at typical sizes.

    `measured` has nanoseconds by the keys of candidates. Estimates are not compared with those: where a candidate of a
    kernel was measured, one that was not is not picked.
    """

    strategies: Strategies[Costed, Frame]
    machine: Costed
    measured: Mapping[str, float] = field(default_factory=lambda: UNMEASURED)

    def __call__(self, body: KernelBody, kernel: str) -> Offer:
        """The pick, and all that was offered, for a kernel of which `kernel` is the canonical text.

        It is the first candidate, of the first strategy that can run the kernel, unless another is faster by a margin.
        """
        at = at_typical(body.function.symbols)
        choices: list[Choice] = []
        offered: list[Candidate] = []
        for strategy, choice in self._choices(body):
            estimate = self.machine.nanoseconds(choice.cost(at), choice.item, at)
            choices.append(choice)
            offered.append(Candidate(self._key(kernel, strategy, choice), choice.strategy, estimate))
        assert offered, "the last strategy of a table runs every kernel"
        picked = self._fastest([candidate.key for candidate in offered], [each.estimate_ns for each in offered])
        return Offer(choices[picked], picked, tuple(offered))

    def _fastest(self, keys: Sequence[str], estimates: Sequence[float]) -> int:
        is_measured = any(key in self.measured for key in keys)
        unknown = [float("inf")] * len(keys) if is_measured else estimates
        times = [self.measured.get(key, ns) for key, ns in zip(keys, unknown, strict=True)]
        return min(range(len(keys)), key=lambda at: times[at] * (MARGIN if at == 0 else 1.0))

    def _choices(self, body: KernelBody) -> Iterator[tuple[Strategy[Any, Costed, Frame], Choice]]:
        for strategy in self.strategies.values():
            problem = strategy.find(body)
            if problem is not None:
                yield from ((strategy, choice) for choice in strategy.candidates(problem, self.machine))

    def _key(self, kernel: str, strategy: Strategy[Any, Costed, Frame], choice: Choice) -> str:
        item = choice.item.model_copy(update={"kernel_name": ""}).model_dump_json()
        parts = (kernel, self.machine.key, choice.strategy, str(strategy.version), item)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def schedule(module: ir.Module, picker: Picker[Costed, Frame], reuse: Reuse | None) -> ir.Module:
    """Pick a schedule for every kernel and write it on its function.

    `reuse` is what the strategies allow a kernel to compute in place; None is nothing.
    """
    attach_schedules(module, picker, picker.machine, reuse)
    return module
