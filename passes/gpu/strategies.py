"""The ways to run a kernel on a GPU, in order of preference."""

from __future__ import annotations

from collections.abc import Iterator

from passes import upstream
from passes.emit.index_emission import IndexEmitter
from passes.loops.body import KernelBody
from passes.loops.collapse import collapse
from passes.schedule.choice import Choice
from passes.schedule.record import PlacedAxis, kernel_item, on_threads
from passes.strategy import Strategies, Strategy
from tensorkiln.schedule import KernelItem

from . import contraction, points, rows, scatter
from .frame import Frame
from .machine import Machine

STRATEGIES: Strategies[Machine, Frame] = {
    scatter.NAME: Strategy(scatter.find, scatter.candidates, scatter.realise, scatters=True),
    contraction.NAME: Strategy(contraction.find, contraction.candidates, contraction.realise),
    points.NAME: Strategy(points.find, points.candidates, points.realise),
    rows.NAME: Strategy(collapse, rows.candidates, rows.realise),
}


def _only(body: KernelBody, machine: Machine) -> Iterator[Choice]:
    axes = [PlacedAxis("group", 1, "block")]
    yield upstream.choice(body, kernel_item(body.function.name, axes, on_threads(1, 1, machine.runtime)))


def _realise_none(body: KernelBody, item: KernelItem, frame: Frame) -> None:
    upstream.emit(body, frame.linalg, frame.buffers, IndexEmitter(body.space, frame.names), frame.entry)


UNSCHEDULED: Strategies[Machine, Frame] = {upstream.NAME: Strategy(upstream.find, _only, _realise_none, scatters=None)}
"""The strategy that lowers the linalg of a kernel unchanged."""
