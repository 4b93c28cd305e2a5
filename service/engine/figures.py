"""Metrics of an engine, read when they are scraped."""

from __future__ import annotations

from collections.abc import Generator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.observe.instruments import REGISTRY

from .engine import Engine


class _Figures(Collector):
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Generator[Metric]:
        waiting = GaugeMetricFamily("kiln_queue_depth", "Jobs that wait for their turn.", labels=["lane"])
        running = GaugeMetricFamily("kiln_queue_running", "Jobs that have their turn.", labels=["lane"])
        age = GaugeMetricFamily("kiln_queue_age_seconds", "Seconds that the oldest of them waits.", labels=["lane"])
        for name, lane in self._engine.fairness.lanes.items():
            load = lane.load()
            waiting.add_metric([name], load.waiting)
            running.add_metric([name], load.running)
            age.add_metric([name], load.oldest_s)
        jobs = GaugeMetricFamily("kiln_jobs_open", "Accepted jobs here that have not ended.", labels=["state"])
        for state, count in self._engine.jobs.open().items():
            jobs.add_metric([state], count)
        yield from (waiting, running, age, jobs)


class _OfProcess(Collector):
    """The metrics of one of several processes, labelled as its own: in one series, counters would seem to fall."""

    def __init__(self, figures: Collector, place: int) -> None:
        self._figures = figures
        self._label = {"process": str(place)}

    def collect(self) -> Generator[Metric]:
        for metric in self._figures.collect():
            own = Metric(metric.name, metric.documentation, metric.type, metric.unit)
            own.samples = [sample._replace(labels={**sample.labels, **self._label}) for sample in metric.samples]
            yield own


def exposition(engine: Engine, place: int | None = None) -> bytes:
    """All figures, in the text format of Prometheus, with the `place` of this process among several."""
    registry = CollectorRegistry()
    for figures in (REGISTRY, _Figures(engine)):
        registry.register(figures if place is None else _OfProcess(figures, place))
    return generate_latest(registry)
