"""The ways to run a kernel on a CPU, in order of preference."""

from __future__ import annotations

from passes import upstream
from passes.loops.collapse import collapse
from passes.schedule.record import kernel_item, on_processors
from passes.strategy import Strategies, Strategy, every

from . import chain, contraction, loops, scatter, transpose, winograd
from .convolution import convolution_of
from .frame import Frame
from .machine import Machine

STRATEGIES: Strategies[Machine, Frame] = {
    scatter.NAME: Strategy(every, scatter.candidates, scatter.realise, scatters=True, version=7),
    chain.NAME: Strategy(chain.find, chain.candidates, chain.realise, version=15),
    contraction.NAME: Strategy(
        contraction.find, contraction.candidates, contraction.realise, contraction.tilings, version=17
    ),
    winograd.NAME: Strategy(convolution_of, winograd.candidates, winograd.realise, version=3),
    transpose.NAME: Strategy(transpose.find, transpose.candidates, transpose.realise, version=5),
    loops.NAME: Strategy(collapse, loops.candidates, loops.realise, version=17),
}
UNSCHEDULED: Strategies[Machine, Frame] = upstream.strategies(
    lambda name, _: kernel_item(name, (), on_processors(1)),
    lambda frame: frame.symbols,
)
"""The strategy that lowers the linalg of a kernel unchanged."""
