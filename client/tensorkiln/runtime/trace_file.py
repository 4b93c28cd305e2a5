"""A profile in the trace event format, for Perfetto (ui.perfetto.dev) and chrome://tracing.

The format is described in Google's "Trace Event Format": complete events ("X") with times in microseconds, and metadata
("M") that names processes and threads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from .item_profile import ItemProfile

_SCHEDULE: Final = 0
_CATEGORIES: Final = {"kernel": "kernel", "memory_transfer": "transfer", "host_callback": "callback", "loop": "loop"}


def trace_of(title: str, items: Sequence[ItemProfile], *, is_gpu: bool) -> bytes:
    """The trace as JSON: a row for the items, and one for each thread of the host or stream of the GPU."""
    lanes = sorted({span.lane for item in items for span in item.spans})
    what = "stream" if is_gpu else "thread"
    events = [
        _named("process_name", 0, title),
        _named("thread_name", _SCHEDULE, "items"),
        *(_named("thread_name", 1 + lane, f"{what} {lane}") for lane in lanes),
        *(event for item in items for event in _events(item)),
    ]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, indent=1).encode()


def _named(kind: str, thread: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": 1, "tid": thread, "args": {"name": name}}


def _events(item: ItemProfile) -> Iterator[dict[str, Any]]:
    details = _details(item)
    yield _complete(item, _SCHEDULE, item.start_ns, item.ns, details)
    for span in item.spans:
        yield _complete(item, 1 + span.lane, span.start_ns, span.ns, details)


def _complete(item: ItemProfile, thread: int, start_ns: int, ns: int, details: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": item.name or item.op,
        "cat": _CATEGORIES[item.op],
        "ph": "X",
        "ts": start_ns / 1e3,
        "dur": ns / 1e3,
        "pid": 1,
        "tid": thread,
        "args": details,
    }


def _details(item: ItemProfile) -> dict[str, Any]:
    details: dict[str, Any] = {"item": item.item_id, "threads": item.threads}
    if item.launch is not None:
        details["grid"] = list(item.launch.global_size)
        if item.launch.local_size is not None:
            details["group"] = list(item.launch.local_size)
    if item.estimate_ns:
        details["estimate_ns"] = item.estimate_ns
    if item.ns and item.bytes:
        details |= {"bytes": item.bytes, "GB/s": round(item.bytes / item.ns, 3)}
    if item.ns and item.flops:
        details |= {"flops": item.flops, "GFLOP/s": round(item.flops / item.ns, 3)}
    return details
