"""A plot of a record: a line per case, with a dot per peer at the ratio of its time to ours."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape

from tests.bench.peers.peers import PEERS
from tests.bench.peers.record import Record

COLOURS: Final = {
    "numpy": "#7f7f7f",
    "jax": "#1f77b4",
    "torch": "#d62728",
    "torch-compile": "#ff9896",
    "iree": "#2ca02c",
    "iree-tiled": "#98df8a",
    "onnxruntime": "#9467bd",
    "numba": "#bcbd22",
}
TITLES: Final = {peer.name: peer.title for peer in PEERS}

WIDTH, LEFT, RIGHT, TOP, STEP, RADIUS = 920, 110, 30, 70, 20, 5
POWERS: Final = (-2, 6)
"""The ends of the scale as powers of two; dots beyond are drawn at the end."""

SETTINGS: Final = {"row": (1, "warm", "aligned"), "network": (1, "default", "numpy"), "model": (1, "default", "numpy")}


def plot(record: Record) -> str:
    """An SVG of the cases for which tensorkiln has a time, on one core."""
    lines = [(case, relative) for case in record.kinds if (relative := _relative(record, case))]
    height = TOP + STEP * len(lines) + 30
    body = [*_scale(height), *_legend()]
    for number, (case, relative) in enumerate(lines):
        body += _line(TOP + STEP * number, case, relative)
    size = f'width="{WIDTH}" height="{height}"'
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join([begin, f'<rect {size} fill="white"/>', *body, "</svg>\n"])


def _relative(record: Record, case: str) -> dict[str, float]:
    """Each peer's time divided by ours."""
    us = record.us(case, *SETTINGS[record.kinds[case]])
    if "tensorkiln" not in us:
        return {}
    return {name: taken / us["tensorkiln"] for name, taken in us.items() if name in COLOURS}


def _x(relative: float) -> float:
    low, high = POWERS
    power = min(max(math.log2(relative), low), high)
    return round(LEFT + (power - low) / (high - low) * (WIDTH - LEFT - RIGHT), 1)


def _scale(height: int) -> Iterator[str]:
    yield f'<text x="{LEFT}" y="18">time by ours, one core: right of the line of 1 we take less</text>'
    for power in range(POWERS[0], POWERS[1] + 1):
        x, label = _x(2.0**power), f"1/{2**-power}" if power < 0 else str(2**power)
        colour = "#000000" if power == 0 else "#dddddd"
        yield f'<line x1="{x}" x2="{x}" y1="{TOP - 12}" y2="{height - 22}" stroke="{colour}"/>'
        yield f'<text x="{x}" y="{height - 8}" text-anchor="middle">{label}</text>'


def _legend() -> Iterator[str]:
    for number, (name, colour) in enumerate(COLOURS.items()):
        x = LEFT + number * 100
        yield f'<circle cx="{x}" cy="36" r="{RADIUS}" fill="{colour}"/>'
        yield f'<text x="{x + 9}" y="40" font-size="10">{escape(TITLES[name])}</text>'


def _line(y: int, case: str, relative: dict[str, float]) -> Iterator[str]:
    yield f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(case)}</text>'
    yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#eeeeee"/>'
    for name, times in relative.items():
        title = f"<title>{escape(f'{TITLES[name]}, {case}: {times:.2f}')}</title>"
        yield f'<circle cx="{_x(times)}" cy="{y}" r="{RADIUS}" fill="{COLOURS[name]}">{title}</circle>'
