"""The ways to run a kernel on a GPU, in order of preference."""

from __future__ import annotations

from passes.strategy import Strategies, Strategy

from . import contraction, points, rows, scatter
from .frame import Frame
from .machine import Machine

STRATEGIES: Strategies[Machine, Frame] = {
    scatter.NAME: Strategy(scatter.find, scatter.choose, scatter.realise),
    contraction.NAME: Strategy(contraction.find, contraction.choose, contraction.realise),
    points.NAME: Strategy(points.find, points.choose, points.realise),
    rows.NAME: Strategy(rows.find, rows.choose, rows.realise),
}
