"""Every error is a problem document with a stable code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.engine.reader import in_user_terms
from tensorkiln.canonical import canonicalize
from tensorkiln.errors import DiagnosticError, error_from_problem
from tensorkiln.graph import Graph
from tests.service.bodies import compile_body, encoded, graph
from tests.service.failing import STAGE, failing
from tests.service.server import Server
from tests.service.test_connections import HEAD, connected

BAD_NODE = graph()
BAD_NODE["nodes"][1]["in_var"] = 999
UNSUPPORTED = {**graph(), "schema": 2}


def check(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert set(problem) == {"type", "title", "status", "detail", "code", "retryable", "pointers", "details"}
    assert (problem["status"], problem["code"], problem["type"]) == (status, code, f"urn:tensorkiln:error:{code}")
    assert problem["detail"]
    assert error_from_problem(problem).code == code
    return problem


@pytest.mark.parametrize(
    ("body", "status", "code", "pointers"),
    [
        (b"", 400, "request.invalid", []),
        (b"[", 400, "request.invalid", []),
        (b"[]", 400, "request.invalid", []),
        (b'{"graph": {}, "graph": {}, "target": "cpu"}', 400, "request.invalid", ["/graph"]),
        (b'{"graph": {"nodes": [{"a": 1, "a": 2}]}, "target": "cpu"}', 400, "request.invalid", ["/graph/nodes/0/a"]),
        (b'{"target": "cpu"}', 400, "request.invalid", ["/graph"]),
        (b'{"graph": {}}', 400, "request.invalid", ["/target"]),
        (b'{"graph": {}, "target": "cpu", "priority": 1}', 400, "request.invalid", []),
        (b'{"graph": {}, "target": 1}', 400, "request.invalid", ["/target"]),
        (b'{"graph": {}, "target": []}', 400, "request.invalid", ["/target"]),
        (b'{"graph": {}, "target": "cpu:native"}', 400, "request.invalid", ["/target"]),
        (b'{"graph": {}, "target": ["cpu", "gpu"]}', 400, "request.invalid", ["/target/1"]),
        (b'{"graph": {}, "target": "cpu", "options": 1}', 400, "request.invalid", ["/options"]),
        (b'{"graph":{},"target":"cpu","options":{"fast_math": 1}}', 400, "request.invalid", ["/options/fast_math"]),
        (b'{"graph": {}, "target": "cpu", "options": {"faster": true}}', 400, "request.invalid", ["/options/faster"]),
        (encoded(compile_body(target=["cpu"] * 17)), 413, "limit.exceeded", ["/target"]),
        (b'{"graph": [], "target": "cpu"}', 422, "graph.invalid", None),
        (encoded(compile_body(BAD_NODE)), 422, "graph.invalid", ["/nodes/1/in_var"]),
        (encoded(compile_body(UNSUPPORTED)), 422, "graph.unsupported", ["/schema"]),
        (encoded(compile_body(target="rocm:gfx942")), 422, "graph.unsupported", []),
    ],
)
def test_a_body_that_cannot_be_used_is_refused(
    server: Server, body: bytes, status: int, code: str, pointers: list[str] | None
) -> None:
    problem = check(server.compile(body), status, code)
    if pointers is not None:
        assert problem["pointers"] == pointers
    if code == "limit.exceeded":
        details = problem["details"]
        assert details["actual"] > details["maximum"] > 0
        assert details["limit"]


def test_validation_refuses_the_same_graphs(server: Server) -> None:
    check(server.post("/validate", encoded({"graph": BAD_NODE})), 422, "graph.invalid")
    check(server.post("/validate", encoded({"graph": UNSUPPORTED})), 422, "graph.unsupported")
    check(server.post("/validate", encoded({"graph": graph(), "target": "cpu"})), 400, "request.invalid")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nonsense", 404, "request.not_found"),
        ("GET", "/compile/", 404, "request.not_found"),
        ("GET", f"/artifacts/{'0' * 64}", 404, "request.not_found"),
        ("GET", f"/programs/{'0' * 64}", 404, "request.not_found"),
        ("GET", f"/programs/{'0' * 64}/stages/lower", 404, "request.not_found"),
        ("GET", "/artifacts/..%2f..%2fetc%2fpasswd", 404, "request.not_found"),
        ("GET", f"/artifacts/{'A' * 64}", 422, "request.invalid"),
        ("GET", "/artifacts/short", 422, "request.invalid"),
        *((method, f"/jobs/{'0' * 32}", 404, "request.not_found") for method in ("GET", "DELETE")),
        ("GET", f"/jobs/{'0' * 32}/events", 404, "request.not_found"),
        *((method, "/jobs/nonsense", 422, "request.invalid") for method in ("GET", "DELETE")),
        ("GET", "/jobs/nonsense/events", 422, "request.invalid"),
        ("GET", f"/programs/{'0' * 64}/stages/.hidden", 422, "request.invalid"),
        ("GET", "/compile", 405, "request.invalid"),
        ("DELETE", f"/artifacts/{'0' * 64}", 405, "request.invalid"),
    ],
)
def test_framework_errors_are_problems(server: Server, method: str, path: str, status: int, code: str) -> None:
    answer = server.http.request(method, path)
    check(answer, status, code)
    if status == 405:
        assert answer.headers["Allow"] == {"/compile": "POST"}.get(path, "GET, HEAD")


def test_a_charset_of_utf_8_is_fine(server: Server) -> None:
    headers = {"Content-Type": 'application/json; version=1; charset="UTF-8"'}
    assert server.http.post("/compile", content=encoded(compile_body()), headers=headers).status_code == 200


def test_a_body_above_64_mib_without_a_length_is_refused(server: Server) -> None:
    chunks = (b" " * (1 << 20) for _ in range(65))
    answer = server.http.post("/compile", content=chunks, headers={"Content-Type": "application/json"})
    details = check(answer, 413, "limit.exceeded")["details"]
    assert (details["limit"], details["maximum"]) == ("body_bytes", 64 << 20)


def test_a_client_that_leaves_in_the_middle_of_a_body_harms_nobody(server: Server) -> None:
    for _ in range(3):
        with connected(server) as connection:
            connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
    assert server.http.get("/healthz").status_code == 200
    assert "defect" not in server.log()


def test_a_diagnostic_names_the_node_of_the_user(server: Server) -> None:
    wire = graph()
    wire["nodes"].insert(1, {"node": "const_scalar", "value": 1.0, "dtype": "float32", "out_var": 90})
    wire["nodes"].insert(1, {"node": "unary", "op": "sin", "in_var": 1, "out_var": 91, "dtype": "float32"})
    body = failing(encoded(compile_body(wire)), "refuse")
    node = canonicalize(Graph.model_validate(json.loads(body)["graph"])).nodes[2]
    assert node != 2
    problem = check(server.compile(body), 422, "compile.diagnostic")
    assert problem["pointers"] == [f"/nodes/{node}/in_var"]
    assert problem["detail"] == f"The compiler refuses /nodes/{node}."
    assert problem["details"] == {"stage": STAGE}


def test_a_compile_that_grows_beyond_a_limit_names_stage_and_node(server: Server) -> None:
    wire = graph(name="grows", rows=5)
    wire["nodes"].insert(1, {"node": "const_scalar", "value": 1.0, "dtype": "float32", "out_var": 90})
    problem = check(server.compile(encoded(compile_body(wire)), "few_operations"), 413, "limit.exceeded")
    details = problem["details"]
    assert (details["limit"], details["maximum"], details["stage"]) == ("operations", 20, "to-linalg")
    assert details["actual"] > 20
    assert set(problem["pointers"]) <= {"/nodes/2", "/nodes/3"}
    assert problem["pointers"]
    assert f"made {details['actual']} operations of the graph; the limit is 20: cut the graph" in problem["detail"]
    assert server.compile(encoded(compile_body(wire))).status_code == 200


def test_a_target_that_llvm_does_not_generate_code_for_is_a_diagnostic(server: Server) -> None:
    target = {"kind": "cpu", "triple": "riscv64-unknown-linux-gnu", "cpu": "generic-rv64", "features": []}
    body = encoded({"graph": graph(), "target": target})
    assert check(server.compile(body), 422, "compile.diagnostic")["details"]["stage"]


def test_nodes_are_renamed_in_pointers_and_in_text() -> None:
    error = DiagnosticError("bad at /nodes/1", pointers=["/nodes/1/in_var", "/nodes/12"], details={"stage": "lower"})
    told = in_user_terms(error, json.dumps({"nodes": [4, 7]}).encode())
    assert isinstance(told, DiagnosticError)
    assert told.message == "bad at /nodes/7"
    assert told.pointers == ("/nodes/7/in_var", "/nodes/12")
    assert told.details == {"stage": "lower"}


def test_a_number_that_no_node_has_is_left_as_it_is() -> None:
    text = f"bad at /nodes/{'1' * 5000}, /nodes/ and /nodes/1st"
    assert in_user_terms(DiagnosticError(text), json.dumps({"nodes": [4, 7]}).encode()).message == text
