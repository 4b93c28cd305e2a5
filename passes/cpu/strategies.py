"""The ways to run a kernel on a CPU, in order of preference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from passes.schedule.choice import Choice
from passes.schedule.stages import KernelBody
from tensorkiln.schedule import KernelItem

from . import contraction, loops, scatter
from .frame import Frame
from .machine import Machine

Realise = Callable[[KernelBody, KernelItem, Frame], None]


@dataclass(frozen=True, slots=True)
class Strategy:
    """`matches` says whether it can run a body, `choose` decides how, `realise` emits what was decided."""

    matches: Callable[[KernelBody], bool]
    choose: Callable[[KernelBody, Machine], Choice]
    realise: Realise


STRATEGIES: dict[str, Strategy] = {
    scatter.NAME: Strategy(scatter.matches, scatter.choose, scatter.realise),
    contraction.NAME: Strategy(contraction.matches, contraction.choose, contraction.realise),
    loops.NAME: Strategy(loops.matches, loops.choose, loops.realise),
}


def choose_strategy(body: KernelBody, machine: Machine) -> Choice:
    """The choice of the first strategy that can run the body."""
    strategy = next(strategy for strategy in STRATEGIES.values() if strategy.matches(body))
    return strategy.choose(body, machine)
