"""Schedules that are measured: once, kept, and taken by whoever asks for them."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tensorkiln.build import Builder, relu
from tensorkiln.spec import Tuning
from tensorkiln.target import Target
from tests.service.bodies import encoded
from tests.service.server import Server

NATIVE = Target.parse("cpu:native").model_dump(mode="json")
OTHER = {**NATIVE, "cpu": "znver3" if NATIVE["cpu"] != "znver3" else "znver2"}
pytestmark = pytest.mark.xdist_group("pair")


def layer(columns: int) -> dict[str, Any]:
    """A product whose rows do not fill the tallest tiles of any CPU, so that it has several schedules."""
    b = Builder("layer")
    b.output(relu(b.input("float32", (20, 96)) @ b.input("float32", (96, columns))))
    return json.loads(b.graph().to_json())


def asked(server: Server, graph: dict[str, Any], tuned: str, target: dict[str, Any] = NATIVE) -> httpx2.Response:
    return server.compile(encoded({"graph": graph, "target": target, "options": {"tuned": tuned}}))


def compiled(server: Server, graph: dict[str, Any], tuned: str) -> dict[str, Any]:
    answer = asked(server, graph, tuned)
    assert answer.status_code == 200, answer.text
    (program,) = answer.json()["programs"]
    return program


def test_a_service_measures_once_for_all_that_share_its_store(pair: tuple[Server, Server]) -> None:
    one, two = pair
    graph = layer(70)
    before = compiled(one, graph, "prefer")
    assert (before["tuning"], before["digest"]) == (None, compiled(one, graph, "off")["digest"])
    measured = compiled(one, graph, "measure")
    tuning = Tuning.model_validate(measured["tuning"])
    (kernel,) = tuning.kernels
    assert tuning.machine == NATIVE["cpu"]
    assert kernel.candidates[0].strategy == "contraction"
    assert all(0 < timing.least_ns <= timing.median_ns for timing in kernel.candidates)
    assert measured["cache"]["differs"] == ["options.tuned"]
    for words in ("prefer", "require", "measure"):
        found = compiled(two, graph, words)
        assert (found["cache"]["reason"], found["digest"]) == ("same action", measured["digest"])
        assert found["tuning"] == measured["tuning"]
    assert compiled(two, graph, "off")["digest"] == before["digest"]


def test_measurements_are_part_of_what_was_asked_for_and_can_be_named(pair: tuple[Server, Server]) -> None:
    one, two = pair
    graph = layer(71)
    program = compiled(one, graph, "measure")
    body = encoded({"graph": graph, "target": NATIVE, "options": {"tuned": "prefer"}})
    (action,) = two.post("/explain", body).json()["actions"]
    assert (action["digest"], action["stored"]) == (program["digest"], True)
    named = action["components"]["options"]["tuned"]
    kept = one.http.get(f"/artifacts/{named}").content
    assert json.loads(kept) == program["tuning"]
    assert compiled(two, graph, named)["digest"] == program["digest"]


def test_what_was_not_measured_is_refused_to_whoever_requires_it(patient: Server) -> None:
    answer = asked(patient, layer(72), "require")
    assert (answer.status_code, answer.json()["code"]) == (404, "request.not_found")
    assert "kiln tune" in answer.json()["detail"]
    answer = asked(patient, layer(72), "0" * 64)
    assert (answer.status_code, answer.json()["code"]) == (404, "request.not_found")


def test_other_bytes_than_measurements_are_refused(patient: Server) -> None:
    (code,) = {kernel["artifact"] for kernel in compiled(patient, layer(72), "off")["kernels"]}
    answer = asked(patient, layer(72), code)
    assert (answer.status_code, answer.json()["code"]) == (400, "request.invalid")


def test_another_cpu_is_not_measured(patient: Server) -> None:
    answer = asked(patient, layer(73), "measure", OTHER)
    assert (answer.status_code, answer.json()["code"]) == (422, "graph.unsupported")
    assert OTHER["cpu"] in answer.json()["detail"]
    assert NATIVE["cpu"] in answer.json()["detail"]


@pytest.mark.parametrize("word", ["", "always", "F" * 64, "0" * 63])
def test_an_unknown_word_is_refused(patient: Server, word: str) -> None:
    answer = asked(patient, layer(74), word)
    assert (answer.status_code, answer.json()["code"]) == (400, "request.invalid")


def test_measuring_that_crashes_is_blamed_on_its_stage(patient: Server) -> None:
    body = encoded({"graph": layer(75), "target": NATIVE, "options": {"tuned": "measure"}})
    answer = patient.compile(body, hook="segfault")
    assert (answer.status_code, answer.json()["code"]) == (422, "compile.crashed")
