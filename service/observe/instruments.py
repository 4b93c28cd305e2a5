"""The metrics of this process. `kiln_…` names are part of the interface: docs/observability.md lists them."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

from . import labels

# Counters begin with the process, whose start is a metric already.
disable_created_metrics()

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

COMPILE_SECONDS: Final = Histogram(
    "kiln_compile_seconds",
    "Seconds of one stage of a compile; the outcome of all but the last stage is ok.",
    ("stage", "target", "outcome"),
    buckets=_SECONDS,
)
JOB_SECONDS: Final = Histogram(
    "kiln_job_seconds",
    "Seconds of one task of the sandbox, without its time in a queue.",
    ("kind", "outcome"),
    buckets=_SECONDS,
)
SANDBOX_KILLS: Final = Counter("kiln_sandbox_kills_total", "Tasks that were ended for what they used.", ("cause",))
CRASHES: Final = Counter("kiln_crashes_total", "Tasks that died, or gave no answer.", ("signal", "stage"))
FORK_SERVER_RESTARTS: Final = Counter("kiln_fork_server_restarts_total", "Restarts of fork servers.")
CACHE_REQUESTS: Final = Counter("kiln_cache_requests_total", "Lookups of programs in the store.", ("result", "reason"))
CACHE_CORRUPT: Final = Counter(
    "kiln_cache_corrupt_total",
    "Invalid entries of the store, which are made again: a damaged blob or record; a program, an answer, a crash or "
    "an attempt with an invalid signature; a program that lacks one of its blobs.",
    ("kind",),
)
OF_A_FARM: Final = ("member", "claim", "result")
"""The sealed records of a farm, by their kinds."""
FARM_REFUSED: Final = Counter(
    "kiln_farm_refused_total", "Files of a farm without a valid signature of a worker.", ("kind",)
)
HTTP_REQUESTS: Final = Counter("kiln_http_requests_total", "Answered requests.", ("method", "route", "status"))
HTTP_SECONDS: Final = Histogram(
    "kiln_http_request_seconds",
    "Seconds until the end of an answer.",
    ("method", "route"),
    buckets=_SECONDS,
)
HTTP_IN_FLIGHT: Final = Gauge("kiln_http_requests_in_flight", "Running requests.")
READY: Final = Gauge("kiln_ready", "1 when a check of readiness has passed, 0 when not.", ("check",))

# A rate needs a counter that exists before its first increase: rare ones are made at the start.
for _cause in ("deadline", "memory", "file", "output"):
    SANDBOX_KILLS.labels(_cause)
for _kind in ("blob", "record", "program", "answer", "crash", "attempt", "incomplete"):
    CACHE_CORRUPT.labels(_kind)
for _kind in OF_A_FARM:
    FARM_REFUSED.labels(_kind)


def count_cache(status: str, reason: str) -> None:
    """Count a lookup of a program: `status` is hit or miss, `reason` that of the answer."""
    CACHE_REQUESTS.labels(status, labels.reason(reason)).inc()


def count_corrupt(kind: str) -> None:
    """Count an invalid store entry: `blob`, `record`, `program`, or `incomplete`."""
    CACHE_CORRUPT.labels(kind).inc()


def count_refused(kind: str) -> None:
    """Count a sealed record without a valid signature: `answer`, `crash`, `attempt`, or one of a farm."""
    (FARM_REFUSED if kind in OF_A_FARM else CACHE_CORRUPT).labels(kind).inc()
