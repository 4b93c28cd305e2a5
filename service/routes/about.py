"""GET /capabilities, /keys, /whoami, /healthz, /readyz and /metrics."""

from __future__ import annotations

from collections.abc import Callable, Generator

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.engine.engine import Engine
from service.http.answers import CallerAnswer, Capabilities, Health
from service.http.problems import documented
from service.identity.caller import caller
from tensorkiln.errors import TensorkilnError, UnavailableError
from tensorkiln.trust import KeySet

from .engine_of import engine_of

router = APIRouter(tags=["The service"])
METRICS = "/metrics"


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


@router.get(
    "/keys",
    summary="The public keys that sign programs",
    response_model_exclude_none=True,
    responses=documented(UnavailableError, TensorkilnError),
)
async def keys(request: Request) -> KeySet:
    """JSON Web Keys of the curve Ed25519, the newest first, those that have come to their end included."""
    return engine_of(request).keyring.published()


@router.get(
    "/capabilities",
    summary="What this service can do",
    responses=documented(TensorkilnError),
)
async def capabilities(request: Request) -> Capabilities:
    """Targets, node kinds, dtypes, limits, the level of isolation, and the compiler's build."""
    described: Callable[[], Capabilities] = request.app.state.capabilities
    return described().model_copy(update={"keys": engine_of(request).keyring.published()})


@router.get(
    "/whoami",
    summary="Who the service takes the caller for",
    responses=documented(TensorkilnError),
)
async def whoami() -> CallerAnswer:
    """The name and the tenant of the credential, and what it is good for."""
    who = caller()
    return CallerAnswer(name=who.name, tenant=who.tenant, scopes=tuple(sorted(who.scopes)), is_local=who.is_local)


@router.get("/healthz", summary="Whether the process answers", responses=documented(TensorkilnError))
async def healthz() -> Health:
    """Always ok: restart the process when this does not answer."""
    return Health()


@router.get(
    "/readyz",
    summary="Whether compiles can be sent here",
    responses=documented(UnavailableError, TensorkilnError),
)
async def readyz(request: Request) -> Health:
    """Ok if a process was forked and the store written to within the last seconds, and no shutdown has started."""
    await engine_of(request).check()
    return Health()


@router.get(
    METRICS,
    summary="Figures for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **documented(TensorkilnError)},
)
async def metrics(request: Request) -> Response:
    """Counters, histograms and gauges of this process, in the text format 0.0.4. No label holds what a user wrote.

    Of several workers one answers; the label `process` says which.
    """
    registry, place = CollectorRegistry(), request.app.state.place
    for figures in (REGISTRY, _Figures(engine_of(request))):
        registry.register(figures if place is None else _OfProcess(figures, place))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)
