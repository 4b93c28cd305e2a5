"""The ways to run a kernel on a CPU, in order of preference."""

from __future__ import annotations

from collections.abc import Iterator

from passes import upstream
from passes.emit.index_emission import IndexEmitter
from passes.loops.body import KernelBody
from passes.loops.collapse import collapse
from passes.schedule.choice import Choice
from passes.schedule.record import kernel_item, on_processors
from passes.strategy import Strategies, Strategy
from tensorkiln.schedule import KernelItem

from . import chain, contraction, loops, scatter, winograd
from .convolution import convolution_of
from .frame import Frame
from .machine import Machine

STRATEGIES: Strategies[Machine, Frame] = {
    scatter.NAME: Strategy(scatter.find, scatter.candidates, scatter.realise, scatters=True),
    chain.NAME: Strategy(chain.find, chain.candidates, chain.realise, version=6),
    contraction.NAME: Strategy(
        contraction.find, contraction.candidates, contraction.realise, contraction.tilings, version=6
    ),
    winograd.NAME: Strategy(convolution_of, winograd.candidates, winograd.realise),
    loops.NAME: Strategy(collapse, loops.candidates, loops.realise, version=3),
}


def _only(body: KernelBody, machine: Machine) -> Iterator[Choice]:
    yield upstream.choice(body, kernel_item(body.function.name, (), on_processors(1)))


def _realise_none(body: KernelBody, item: KernelItem, frame: Frame) -> None:
    upstream.emit(body, frame.linalg, frame.buffers, IndexEmitter(body.space, frame.symbols), frame.entry)


UNSCHEDULED: Strategies[Machine, Frame] = {upstream.NAME: Strategy(upstream.find, _only, _realise_none, scatters=None)}
"""The strategy that lowers the linalg of a kernel unchanged."""
