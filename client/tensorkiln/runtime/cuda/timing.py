"""Timing of steps on a device, by events."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..item_profile import ItemProfile, Span, item_profile
from .context import Context
from .launches import DeviceStep
from .streams import Stream


def run_timed(
    context: Context, steps: Sequence[DeviceStep], prepared: Sequence[Callable[[int], object]], stream: Stream
) -> tuple[ItemProfile, ...]:
    """Run the steps one after the other between events, wait for the end, and return the time of each."""
    driver = context.driver
    marks = [(context.timed_event(), context.timed_event()) for _ in steps]
    for run, (start, stop) in zip(prepared, marks, strict=True):
        driver.record_event(start, stream.handle)
        run(stream.handle)
        driver.record_event(stop, stream.handle)
    driver.synchronize(stream.handle)
    profiles: list[ItemProfile] = []
    for step, (start, stop) in zip(steps, marks, strict=True):
        begun, taken = driver.elapsed_ns(marks[0][0], start), driver.elapsed_ns(start, stop)
        profiles.append(item_profile(step, taken, begun, (Span(0, begun, taken),)))
    context.idle_timed_events.extend(event for pair in marks for event in pair)
    return tuple(profiles)
