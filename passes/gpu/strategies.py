"""The ways to run a kernel on a GPU, in order of preference."""

from __future__ import annotations

from passes import upstream
from passes.loops.collapse import collapse
from passes.loops.contraction import contraction_of
from passes.schedule.record import PlacedAxis, kernel_item, on_threads
from passes.strategy import Strategies, Strategy

from . import combining, contraction, points, rows, scatter
from .frame import Frame
from .machine import Machine

STRATEGIES: Strategies[Machine, Frame] = {
    scatter.NAME: Strategy(scatter.find, scatter.candidates, scatter.realise, scatters=True, version=3),
    combining.NAME: Strategy(combining.find, combining.candidates, combining.realise, scatters=True, version=2),
    contraction.NAME: Strategy(contraction_of, contraction.candidates, contraction.realise),
    points.NAME: Strategy(points.find, points.candidates, points.realise),
    rows.NAME: Strategy(collapse, rows.candidates, rows.realise),
}
UNSCHEDULED: Strategies[Machine, Frame] = upstream.strategies(
    lambda name, machine: kernel_item(name, [PlacedAxis("group", 1, "block")], on_threads(1, 1, machine.runtime)),
    lambda frame: frame.names,
)
"""The strategy that lowers the linalg of a kernel unchanged."""
