"""A farm does what one service does: compiles, refuses, tells its progress, cancels, whichever service is asked."""

from __future__ import annotations

import json
import time
from pathlib import Path

import httpx2
import pytest

from tensorkiln.build import Builder
from tensorkiln.target import Target
from tests.farm.topology import Farm
from tests.faults.requests import accept, answered, body, ended, job
from tests.service.failing import STAGE

pytestmark = pytest.mark.xdist_group("farm")


def tuned(word: str) -> bytes:
    """A request for a product, which has several schedules."""
    b = Builder("layer")
    b.output(b.input("float32", (20, 96)) @ b.input("float32", (96, 64)))
    native = Target.parse("cpu:native").model_dump(mode="json")
    return json.dumps({"graph": json.loads(b.graph().to_json()), "target": native, "options": {"tuned": word}}).encode()


def test_a_compile_is_done_by_a_worker_and_found_by_every_service(farm: Farm) -> None:
    first, second = (answered(url, body(1)) for url in farm.urls)
    assert (first.status_code, second.status_code) == (200, 200), (first.text, second.text)
    (made,), (found,) = first.json()["programs"], second.json()["programs"]
    assert (made["cache"]["status"], found["cache"]["status"]) == ("miss", "hit")
    assert found["cache"]["reason"] == "same action"
    assert {**made, "cache": None} == {**found, "cache": None}
    (signed,) = first.json()["signatures"]
    assert signed["record"]["worker"].startswith("worker-")
    assert signed == second.json()["signatures"][0]
    again = answered(farm.urls[1], body(1)).json()["programs"][0]
    assert (again["cache"]["status"], again["cache"]["reason"]) == ("hit", "same request")


def test_a_worker_measures_schedules_for_every_service(farm: Farm) -> None:
    content = tuned("measure")
    (made,) = answered(farm.urls[0], content).json()["programs"]
    (found,) = answered(farm.urls[1], tuned("require")).json()["programs"]
    assert made["tuning"]["kernels"]
    assert (found["digest"], found["cache"]["status"]) == (made["digest"], "hit")


def test_errors_of_a_graph_need_no_worker(farm: Farm) -> None:
    answer = answered(farm.urls[0], b'{"graph": {}, "target": "cpu"}')
    assert (answer.status_code, answer.json()["code"]) == (422, "graph.invalid")


def test_a_failed_compile_is_told_with_a_reproducer(farm: Farm) -> None:
    problem = answered(farm.urls[0], body(2), "refuse").json()
    assert (problem["code"], problem["pointers"]) == ("compile.diagnostic", ["/nodes/1/in_var"])
    problem = answered(farm.urls[0], body(2), "abort").json()
    assert (problem["code"], problem["details"]["signal"]) == ("compile.crashed", "SIGABRT")
    reproducer = httpx2.get(f"{farm.urls[1]}/artifacts/{problem['details']['reproducer']}", verify=False)
    # What fails is in the graph: it does so for whoever tries it again.
    assert answered(farm.urls[1], reproducer.content).json()["code"] == "compile.crashed"


def test_progress_is_told_by_the_service_that_does_not_have_the_job(farm: Farm) -> None:
    identifier = accept(farm.urls[0], body(3), "hang")
    with httpx2.stream("GET", f"{farm.urls[1]}/jobs/{identifier}/events", timeout=60, verify=False) as stream:
        lines = stream.iter_lines()
        while STAGE not in next(lines):
            continue
        assert job(farm.urls[1:], identifier)["state"] == "running"
        cancelled = httpx2.delete(f"{farm.urls[1]}/jobs/{identifier}", verify=False).json()
        assert cancelled["state"] == "cancelled"
        assert any("cancelled" in line for line in lines)
    assert ended(farm.urls[:1], identifier)["state"] == "cancelled"


def test_a_cancelled_compile_leaves_its_worker(farm: Farm) -> None:
    hanging = [accept(farm.urls[0], body(4), "hang") for _ in farm.workers]
    for identifier in hanging:
        while job(farm.urls, identifier)["state"] != "running":
            time.sleep(0.05)
    for identifier in hanging:
        httpx2.delete(f"{farm.urls[1]}/jobs/{identifier}", verify=False)
    assert answered(farm.urls[0], body(5)).status_code == 200


def test_nothing_is_left_of_orders_that_are_over(farm: Farm) -> None:
    assert answered(farm.urls[0], body(6)).status_code == 200
    assert left_of_orders(farm) == []


def left_of_orders(farm: Farm) -> list[Path]:
    """What the store has of orders, once that is nothing or after half a minute."""
    end = time.monotonic() + 30
    while (left := [path for path in (farm.store / "farm").rglob("*") if path.is_file()]) and time.monotonic() < end:
        time.sleep(0.1)
    return left
