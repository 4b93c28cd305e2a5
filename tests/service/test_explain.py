"""POST /explain, and the same words in the answer of a compile."""

from __future__ import annotations

from typing import Any

import pytest

from tests.identity.guarded import Guarded, program
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server


def explained(server: Server, body: dict[str, Any]) -> dict[str, Any]:
    answer = server.post("/explain", encoded(body))
    assert answer.status_code == 200, answer.text
    (action,) = answer.json()["actions"]
    return action


def compiled(server: Server, body: dict[str, Any]) -> dict[str, Any]:
    answer = server.compile(encoded(body))
    assert answer.status_code == 200, answer.text
    (only,) = answer.json()["programs"]
    return only


def test_an_explanation_says_what_the_compile_after_it_says(server: Server) -> None:
    mine, other = graph(rows=81), graph("sqrt", rows=81)
    bodies = [
        compile_body(mine),
        compile_body(graph(name="other", symbol="m", first_var=100, rows=81)),
        compile_body(mine, fast_math=True),
        compile_body(mine, fast_math=True, dump_stages=True),
        compile_body(mine, target="cpu:x86-64-v4"),
        compile_body(other),
        compile_body(other, "cpu:aarch64"),
    ]
    for body in bodies:
        before = explained(server, body)
        without_dumps = before["cache"]["reason"] == "the stored program has no stage dumps"
        assert before["stored"] is (before["cache"]["status"] == "hit" or without_dumps)
        assert explained(server, body) == before, "an explanation changes nothing"
        made = compiled(server, body)
        assert (before["digest"], before["cache"]) == (made["digest"], made["cache"])
        after = explained(server, body)
        assert (after["stored"], after["cache"]) == (True, compiled(server, body)["cache"])
        assert before["components"] == after["components"]
        assert before["components"]["target"] == made["target"]
        if before["cache"]["nearest"] is not None:
            assert server.http.get(f"/programs/{before['cache']['nearest']}").status_code == 200


@pytest.mark.xdist_group("pair")
def test_what_differs_is_told_with_its_values(patient: Server, unusual: Server) -> None:
    mine = graph(rows=82)
    v3 = compiled(patient, compile_body(mine))
    v4 = explained(patient, compile_body(mine, target="cpu:x86-64-v4"))
    assert v4["stored"] is False
    differs = ["target.cpu", "target.features"]
    reason = "differs in target.cpu, target.features"
    assert v4["cache"] == {"status": "miss", "reason": reason, "nearest": v3["digest"], "differs": differs}
    cpu, features = v4["differences"]
    assert cpu == {"component": "target.cpu", "requested": "x86-64-v4", "stored": "x86-64-v3"}
    assert "avx512f" in features["requested"]
    assert features["stored"] == []
    other = explained(patient, compile_body(graph("sqrt", rows=82)))
    assert (other["cache"]["reason"], other["cache"]["differs"]) == ("first request", ["graph"])
    assert other["differences"][0]["stored"] == v4["components"]["graph"]
    salted = explained(unusual, compile_body(mine))
    assert (salted["cache"]["differs"], salted["differences"]) == (["salt"], [])
    assert salted["cache"]["nearest"] == v3["digest"]
    assert "a secret" not in str(salted)


def test_targets_are_explained_in_their_order_and_nothing_is_compiled(server: Server) -> None:
    body = compile_body(graph("exp2", rows=37), target=["cpu:aarch64", "cpu:x86-64-v2"])
    for _ in range(2):
        actions = server.post("/explain", encoded(body)).json()["actions"]
        assert [action["components"]["target"]["cpu"] for action in actions] == ["generic", "x86-64-v2"]
        assert [action["stored"] for action in actions] == [False, False]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{}", 400, "request.invalid"),
        (encoded({"graph": graph()}), 400, "request.invalid"),
        (encoded(compile_body({"schema": 1})), 422, "graph.invalid"),
        (b"[" * 1000, 413, "limit.exceeded"),
    ],
)
def test_what_cannot_be_compiled_cannot_be_explained(server: Server, body: bytes, status: int, code: str) -> None:
    answer = server.post("/explain", body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.xdist_group("guarded")
def test_a_tenant_is_explained_its_own_programs_alone(guarded: Guarded) -> None:
    mine, theirs = guarded.key("explained"), guarded.key("unexplained")
    made = program(guarded.send(mine, "POST", "/compile", encoded(compile_body())))
    for body in (compile_body(), compile_body(fast_math=True), compile_body(graph("sqrt"))):
        (other,) = guarded.send(theirs, "POST", "/explain", encoded(body)).json()["actions"]
        assert other["stored"] is False
        unexplained = {"status": "miss", "reason": "first request", "nearest": None, "differs": []}
        assert (other["cache"], other["differences"]) == (unexplained, [])
        assert other["digest"] != made
    (near,) = guarded.send(mine, "POST", "/explain", encoded(compile_body(fast_math=True))).json()["actions"]
    assert (near["cache"]["nearest"], near["cache"]["differs"]) == (made, ["options.fast_math"])
