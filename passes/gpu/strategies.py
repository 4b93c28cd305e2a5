"""The ways to run a kernel on a GPU, in order of preference."""

from __future__ import annotations

from passes.strategy import Strategy

from . import contraction, points, rows, scatter
from .frame import Frame
from .machine import Machine

STRATEGIES: dict[str, Strategy[Machine, Frame]] = {
    scatter.NAME: Strategy(scatter.matches, scatter.choose, scatter.realise),
    contraction.NAME: Strategy(contraction.matches, contraction.choose, contraction.realise),
    points.NAME: Strategy(points.matches, points.choose, points.realise),
    rows.NAME: Strategy(rows.matches, rows.choose, rows.realise),
}
