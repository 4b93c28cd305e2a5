"""A profile as a roofline plot: throughput of each kernel over its operations per byte, below the machine's peak.

The model is that of Williams, Waterman and Patterson, "Roofline: an insightful visual performance model", 2009.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from .item_profile import ItemProfile
from .machine import Machine, rate_text

_WIDTH, _HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 40, 50
_STYLE: Final = "font-family:sans-serif;font-size:12px"


def roofline(title: str, run: Iterable[ItemProfile], machine: Machine | None) -> str:
    """The plot as SVG, on logarithmic axes; items without operations, bytes or time are left out."""
    items = [item for item in run if item.flops and item.bytes and item.ns]
    intensities = [item.flops / item.bytes for item in items]
    reached = [item.flops / item.ns for item in items]
    if machine is not None:
        intensities.append(machine.gflop_per_s / machine.gb_per_s)
        reached.append(machine.gflop_per_s)
    axes = _Axes(intensities or [1.0], reached or [1.0])
    parts = [*axes.grid(), *(_roof(axes, machine) if machine is not None else ()), *_points(axes, items)]
    head = f'<text x="{_LEFT}" y="24" font-weight="bold">{escape(title)}</text>'
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    ground = '<rect width="100%" height="100%" fill="white"/>'
    body = "\n".join([ground, head, *parts])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{_STYLE}">\n{body}\n</svg>\n'


class _Axes:
    """The decades that contain all values, and the coordinates of values in the figure."""

    def __init__(self, intensities: Sequence[float], reached: Sequence[float]) -> None:
        self._x = _decades(intensities)
        self._y = _decades(reached)

    def x(self, intensity: float) -> float:
        return _LEFT + _share(intensity, self._x) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, rate: float) -> float:
        return _HEIGHT - _BOTTOM - _share(rate, self._y) * (_HEIGHT - _TOP - _BOTTOM)

    @property
    def intensities(self) -> tuple[float, float]:
        return 10.0 ** self._x[0], 10.0 ** self._x[1]

    def grid(self) -> Iterable[str]:
        for power in range(self._x[0], self._x[1] + 1):
            at = self.x(10.0**power)
            yield f'<path d="M{at:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="#ddd"/>'
            yield f'<text x="{at:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{10.0**power:g}</text>'
        for power in range(self._y[0], self._y[1] + 1):
            at = self.y(10.0**power)
            yield f'<path d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}" stroke="#ddd"/>'
            yield f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
        yield f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 12}" text-anchor="middle">operations per byte</text>'
        middle = (_HEIGHT + _TOP - _BOTTOM) / 2
        turned = f'transform="rotate(-90 16 {middle})"'
        yield f'<text x="16" y="{middle}" text-anchor="middle" {turned}>GFLOP/s</text>'


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _share(value: float, decades: tuple[int, int]) -> float:
    low, high = decades
    return (math.log10(value) - low) / (high - low)


def _roof(axes: _Axes, machine: Machine) -> Iterable[str]:
    low, high = axes.intensities
    ridge = machine.gflop_per_s / machine.gb_per_s
    points = [(at, min(machine.gflop_per_s, at * machine.gb_per_s)) for at in sorted({low, ridge, high})]
    path = " ".join(f"{axes.x(at):.1f},{axes.y(rate):.1f}" for at, rate in points)
    # The line may run below the figure: clip it there.
    inside = (
        f'<clipPath id="in"><rect x="{_LEFT}" y="{_TOP}" width="100%" height="{_HEIGHT - _TOP - _BOTTOM}"/></clipPath>'
    )
    yield f'{inside}<polyline points="{path}" fill="none" stroke="#c33" stroke-width="2" clip-path="url(#in)"/>'
    yield f'<text x="{_WIDTH - _RIGHT}" y="24" text-anchor="end" fill="#c33">{machine}</text>'


def _points(axes: _Axes, items: Iterable[ItemProfile]) -> Iterable[str]:
    for item in items:
        x, y = axes.x(item.flops / item.bytes), axes.y(item.flops / item.ns)
        rates = f"{rate_text(item.flops / item.ns)} GFLOP/s, {rate_text(item.bytes / item.ns)} GB/s"
        said = f"{item.name}: {rates}, {item.ns} ns"
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#36c"><title>{escape(said)}</title></circle>'
        yield f'<text x="{x + 8:.1f}" y="{y + 4:.1f}">{escape(item.name[:40])}</text>'
