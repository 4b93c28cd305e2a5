"""The ways to run a kernel on a CPU, in order of preference."""

from __future__ import annotations

from passes.strategy import Strategy

from . import contraction, loops, scatter
from .frame import Frame
from .machine import Machine

STRATEGIES: dict[str, Strategy[Machine, Frame]] = {
    scatter.NAME: Strategy(scatter.matches, scatter.choose, scatter.realise),
    contraction.NAME: Strategy(contraction.matches, contraction.choose, contraction.realise),
    loops.NAME: Strategy(loops.matches, loops.choose, loops.realise),
}
