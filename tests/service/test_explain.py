"""POST /explain, and the same words in the answer of a compile."""

from __future__ import annotations

from pathlib import Path
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


def test_an_explanation_says_what_the_compile_after_it_says(home: Path) -> None:
    bodies = [
        compile_body(),
        compile_body(graph(name="other", symbol="m", first_var=100)),
        compile_body(fast_math=True),
        compile_body(fast_math=True, dump_stages=True),
        compile_body(target="cpu:x86-64-v4"),
        compile_body(graph("sqrt")),
        compile_body(graph("sqrt"), "cpu:aarch64"),
    ]
    with Server(home) as server:
        for body in bodies:
            before = explained(server, body)
            assert explained(server, body) == before, "an explanation changes nothing"
            made = compiled(server, body)
            assert (before["digest"], before["cache"]) == (made["digest"], made["cache"])
            after = explained(server, body)
            assert (after["stored"], after["cache"]) == (True, compiled(server, body)["cache"])
            assert before["components"] == after["components"]
            assert before["components"]["target"] == made["target"]
            if before["cache"]["nearest"] is not None:
                assert server.http.get(f"/programs/{before['cache']['nearest']}").status_code == 200


def test_what_differs_is_told_with_its_values(home: Path) -> None:
    with Server(home) as server:
        v3 = compiled(server, compile_body())
        v4 = explained(server, compile_body(target="cpu:x86-64-v4"))
        assert v4["stored"] is False
        differs = ["target.cpu", "target.features"]
        reason = "differs in target.cpu, target.features"
        assert v4["cache"] == {"status": "miss", "reason": reason, "nearest": v3["digest"], "differs": differs}
        cpu, features = v4["differences"]
        assert cpu == {"component": "target.cpu", "requested": "x86-64-v4", "stored": "x86-64-v3"}
        assert "avx512f" in features["requested"]
        assert features["stored"] == []
        other = explained(server, compile_body(graph("sqrt")))
        assert (other["cache"]["reason"], other["cache"]["differs"]) == ("first request", ["graph"])
        assert other["differences"][0]["stored"] == v4["components"]["graph"]
    with Server(home, salt="geheim") as server:
        salted = explained(server, compile_body())
        assert (salted["cache"]["differs"], salted["differences"]) == (["salt"], [])
        assert salted["cache"]["nearest"] == v3["digest"]
        assert "geheim" not in str(salted)


def test_a_stored_program_without_the_dumps_that_are_wanted_is_stored_and_a_miss(home: Path) -> None:
    with Server(home) as server:
        compiled(server, compile_body())
        dumped = explained(server, compile_body(dump_stages=True))
        assert dumped["stored"] is True
        assert dumped["cache"]["reason"] == "the stored program has no stage dumps"


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


def test_a_tenant_is_explained_its_own_programs_alone(home: Path) -> None:
    with Guarded(home) as server:
        mine, theirs = server.key("a"), server.key("b")
        made = program(server.send(mine, "POST", "/compile", encoded(compile_body())))
        for body in (compile_body(), compile_body(fast_math=True), compile_body(graph("sqrt"))):
            (other,) = server.send(theirs, "POST", "/explain", encoded(body)).json()["actions"]
            assert other["stored"] is False
            unexplained = {"status": "miss", "reason": "first request", "nearest": None, "differs": []}
            assert (other["cache"], other["differences"]) == (unexplained, [])
            assert other["digest"] != made
        (near,) = server.send(mine, "POST", "/explain", encoded(compile_body(fast_math=True))).json()["actions"]
        assert (near["cache"]["nearest"], near["cache"]["differs"]) == (made, ["options.fast_math"])
