"""Workers are scaled by all that waits for one or is at one, counted once: KEDA's query, asked of a real service."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from tests.observe.figures import Figures
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server

from .files import KUBERNETES, documents

_TERM = re.compile(r'sum\((?P<name>kiln_\w+)\{(?P<label>\w+)=(?P<is_pattern>~?)"(?P<value>[^"]+)"\}\)')


def query() -> str:
    """What KEDA asks Prometheus."""
    (scaled,) = documents(KUBERNETES / "components/keda/workers.yaml")
    (trigger,) = scaled["spec"]["triggers"]
    return trigger["metadata"]["query"]


def asked(server: Server) -> float:
    """What Prometheus would answer with this service alone, for a query that is a sum of sums by one label."""
    figures, total = Figures(server), 0.0
    for text in query().split(" + "):
        term = _TERM.fullmatch(text)
        assert term is not None, text
        told = {each.labels[term["label"]] for each in figures.samples if each.name == term["name"]}
        values = term["value"].split("|") if term["is_pattern"] else [term["value"]]
        assert set(values) <= told, f"{text}: the service tells {sorted(told)}"
        total += sum(figures(term["name"], **{term["label"]: value}) for value in values)
    return total


def settles(server: Server, holds: Callable[[Figures], bool]) -> None:
    """Wait until a service says so of itself."""
    while not holds(Figures(server)):
        time.sleep(0.02)


def post(server: Server, number: int) -> str:
    """The id of an accepted job, whose compile takes until its deadline."""
    body = encoded(compile_body(graph(rows=number + 1)))
    answer = server.post("/compile", body, Prefer="respond-async", fails="hang")
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def test_jobs_that_wait_for_their_turn_are_seen_and_those_that_compile_counted_once(tmp_path: Path) -> None:
    with Server(tmp_path, fails=True, concurrency=1, compile_deadline_s=600) as server:
        assert asked(server) == 0
        jobs = [post(server, number) for number in range(5)]
        settles(server, lambda figures: figures("kiln_queue_running", lane="compiles") == 1)
        settles(server, lambda figures: figures("kiln_queue_depth", lane="jobs") == 4)
        assert asked(server) == len(jobs)
        for identifier in jobs:
            assert server.http.delete(f"/jobs/{identifier}").status_code == 200
        settles(server, lambda figures: figures("kiln_jobs_open") == 0)
        assert asked(server) == 0
