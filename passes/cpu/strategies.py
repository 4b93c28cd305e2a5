"""The ways to run a kernel on a CPU, in order of preference."""

from __future__ import annotations

from passes.strategy import Strategies, Strategy

from . import contraction, loops, scatter
from .frame import Frame
from .machine import Machine

STRATEGIES: Strategies[Machine, Frame] = {
    scatter.NAME: Strategy(scatter.find, scatter.choose, scatter.realise),
    contraction.NAME: Strategy(contraction.find, contraction.choose, contraction.realise),
    loops.NAME: Strategy(loops.find, loops.choose, loops.realise),
}
