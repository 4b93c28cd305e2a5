"""Schedules that are measured: once, kept, and taken by whoever asks for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from service.identity.caller import Scope
from service.sandbox.frames import Message
from service.sandbox.reply import MOST_TUNING_BYTES, require_tuning
from tensorkiln import Graph
from tensorkiln.build import Builder, relu
from tensorkiln.errors import CrashedError
from tensorkiln.spec import Tuning
from tensorkiln.target import Target
from tests.identity.guarded import Guarded
from tests.service.bodies import encoded
from tests.service.server import Server

NATIVE = Target.parse("cpu:native").model_dump(mode="json")
OTHER = {**NATIVE, "cpu": "znver3" if NATIVE["cpu"] != "znver3" else "znver2"}
pytestmark = pytest.mark.xdist_group("pair")


def tall_layer(columns: int) -> Graph:
    """A product whose rows do not fill the tallest tiles of any CPU, so that it has several schedules."""
    b = Builder("layer")
    b.output(relu(b.input("float32", (20, 96)) @ b.input("float32", (96, columns))))
    return b.graph()


def layer(columns: int) -> dict[str, Any]:
    return json.loads(tall_layer(columns).to_json())


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


@pytest.mark.parametrize(
    ("word", "target", "status", "code", "said"),
    [
        ("require", NATIVE, 404, "request.not_found", ["kiln tune"]),
        ("0" * 64, NATIVE, 404, "request.not_found", []),
        ("measure", OTHER, 422, "graph.unsupported", [OTHER["cpu"], NATIVE["cpu"]]),
        *((word, NATIVE, 400, "request.invalid", []) for word in ("", "always", "F" * 64, "0" * 63)),
    ],
)
def test_unmeasured_programs_are_refused_if_required(
    patient: Server, word: str, target: dict[str, Any], status: int, code: str, said: list[str]
) -> None:
    answer = asked(patient, layer(72), word, target)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert all(each in answer.json()["detail"] for each in said)


def test_measurements_of_another_graph_and_other_bytes_are_not_taken(patient: Server) -> None:
    program = compiled(patient, layer(71), "measure")
    (code,) = {kernel["artifact"] for kernel in program["kernels"]}
    body = encoded({"graph": layer(71), "target": NATIVE, "options": {"tuned": "prefer"}})
    (action,) = patient.post("/explain", body).json()["actions"]
    for digest in (code, action["components"]["options"]["tuned"]):
        answer = asked(patient, layer(77), digest)
        assert (answer.status_code, answer.json()["code"]) == (404, "request.not_found")


def test_measurements_are_no_program(patient: Server) -> None:
    body = encoded({"graph": layer(78), "target": NATIVE, "options": {"tuned": "measure"}})
    (action,) = patient.post("/explain", body).json()["actions"]
    assert (action["stored"], action["components"]["options"]["tuned"]) == (False, "measure")
    compiled(patient, layer(78), "measure")
    for path in ("", "/signature"):
        answer = patient.http.get(f"/programs/{action['digest']}{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "request.not_found")


def test_an_explanation_says_of_each_target_whether_it_was_measured(patient: Server) -> None:
    compiled(patient, layer(71), "measure")
    body = {"graph": layer(71), "target": [NATIVE, "cpu:x86-64-v2"], "options": {"tuned": "require"}}
    measured, other = patient.post("/explain", encoded(body)).json()["actions"]
    assert measured["stored"]
    assert not other["stored"]
    assert "kiln tune" in other["cache"]["reason"]


def test_callers_without_cache_read_share_no_measurements(tmp_path: Path) -> None:
    with Guarded(tmp_path / "kiln") as server:
        reads, writes = server.key("one"), server.key("one", Scope.COMPILE, Scope.CACHE_WRITE)

        def said(key: str, word: str) -> tuple[int, Any]:
            body = encoded({"graph": layer(64), "target": NATIVE, "options": {"tuned": word}})
            answer = server.send(key, "POST", "/compile", body)
            return answer.status_code, answer.json()

        status, answer = said(reads, "measure")
        assert status == 200
        assert said(writes, "measure")[0] == 403
        assert said(writes, "require")[0] == 404
        assert said(writes, "prefer")[1]["programs"][0]["tuning"] is None
        assert said(reads, "require")[1]["programs"][0]["digest"] == answer["programs"][0]["digest"]


@pytest.mark.parametrize(
    ("content", "artifacts"),
    [
        (b"garbage", []),
        (b"{}", []),
        (b" " * (MOST_TUNING_BYTES + 1), []),
        (Tuning(machine="", rounds=0).model_dump_json().encode(), ["a" * 64]),
        (b'{"machine": "x", "rounds": 1, "before_ns": 1' + b"0" * 400 + b"}", []),
    ],
    ids=["garbage", "nothing", "long", "artifacts", "huge"],
)
def test_an_answer_that_is_no_record_of_measurements_is_a_crash(content: bytes, artifacts: list[str]) -> None:
    header = {"artifacts": artifacts, "stages": {}, "seconds": {}}
    with pytest.raises(CrashedError) as caught:
        require_tuning(Message(header, {"program": content}))
    assert caught.value.details["stage"] == "return"


def test_measuring_that_crashes_is_blamed_on_its_stage(patient: Server) -> None:
    body = encoded({"graph": layer(75), "target": NATIVE, "options": {"tuned": "measure"}})
    answer = patient.compile(body, "segfault")
    assert (answer.status_code, answer.json()["code"]) == (422, "compile.crashed")
