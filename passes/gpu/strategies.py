"""The ways to run a kernel on a GPU, in order of preference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from passes.schedule.choice import Choice
from passes.schedule.stages import KernelBody
from tensorkiln.schedule import KernelItem

from . import contraction, points, rows, scatter
from .frame import Frame
from .machine import Machine


@dataclass(frozen=True, slots=True)
class Strategy:
    """`matches` says whether it can run a body, `choose` decides how, `realise` emits what was decided."""

    matches: Callable[[KernelBody], bool]
    choose: Callable[[KernelBody, Machine], Choice]
    realise: Callable[[KernelBody, KernelItem, Frame], None]


STRATEGIES: dict[str, Strategy] = {
    scatter.NAME: Strategy(scatter.matches, scatter.choose, scatter.realise),
    contraction.NAME: Strategy(contraction.matches, contraction.choose, contraction.realise),
    points.NAME: Strategy(points.matches, points.choose, points.realise),
    rows.NAME: Strategy(rows.matches, rows.choose, rows.realise),
}


def choose_strategy(body: KernelBody, machine: Machine) -> Choice:
    """The choice of the first strategy that can run the body."""
    strategy = next(strategy for strategy in STRATEGIES.values() if strategy.matches(body))
    return strategy.choose(body, machine)
