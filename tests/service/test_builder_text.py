"""Lines of the builder in the place of a graph, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tensorkiln.build import Builder, relu
from tensorkiln.build_text import MAX_TEXT_BYTES
from tests.service.bodies import V3, graph
from tests.service.server import Server
from tests.snippets import ROOT, blocks

LINES = """
from tensorkiln.build import Builder, relu

b = Builder("lines")
n = b.symbol("n", 1, 64)
x, w = b.input("float32", (n, 8)), b.input("float32", (8, 3))
b.output(relu(x @ w))
"""


def post(server: Server, text: Any, path: str = "/compile", **more: Any) -> httpx2.Response:
    target = {} if path in ("/validate", "/translate") else {"target": V3}
    return server.http.post(path, json={"builder": text, **target, **more})


def test_the_lines_and_the_graph_that_they_write_are_one_action(server: Server) -> None:
    b = Builder("lines")
    n = b.symbol("n", 1, 64)
    x, w = b.input("float32", (n, 8)), b.input("float32", (8, 3))
    b.output(relu(x @ w))
    (program,) = post(server, LINES).json()["programs"]
    (other,) = server.http.post("/compile", json={"graph": b.document(), "target": V3}).json()["programs"]
    assert (other["digest"], other["cache"]["status"]) == (program["digest"], "hit")
    assert program["symbols"] == other["symbols"]
    translation = post(server, LINES, "/translate").json()
    assert server.http.post("/validate", json={"graph": translation["graph"]}).json()["valid"]
    assert set(translation["places"]) == {
        "line 6, column 8",
        "line 6, column 36",
        "line 7, column 15",
        "line 7, column 10",
    }
    report = post(server, LINES, "/validate").json()
    (action,) = post(server, LINES, "/explain").json()["actions"]
    assert (action["stored"], action["components"]["graph"]) == (True, report["digest"])
    jobs = server.http.post(
        "/jobs:batch", json={"requests": [{"builder": LINES, "target": V3}, {"builder": "x"}]}
    ).json()
    assert [each["status"] for each in jobs["jobs"]][1] == 400


def test_the_request_of_the_manual_is_taken(server: Server) -> None:
    (shown,) = blocks(ROOT / "docs" / "build.md", "http")
    first, _, body = shown.text.partition("\n\n")
    answer = server.http.post(first.removeprefix("POST "), json=json.loads(body))
    assert answer.json()["inputs"][0]["shape"] == ["n"]


@pytest.mark.parametrize(
    ("text", "status", "code", "place"),
    [
        ("import os\nos.system('id')", 422, "graph.unsupported", (1, 1)),
        ("b = Builder()\nopen('/etc/passwd')", 422, "graph.invalid", (2, 1)),
        ("#" * (MAX_TEXT_BYTES + 1), 413, "limit.exceeded", None),
        ("x = 1 +" * 3 + "(" * 9000, 422, "graph.invalid", None),
        (3, 400, "request.invalid", None),
    ],
)
def test_invalid_lines_are_refused_by_line_and_column(
    server: Server, text: Any, status: int, code: str, place: tuple[int, int] | None
) -> None:
    answer = post(server, text, "/validate")
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["pointers"]) == (status, code, ["/builder"])
    if place is not None:
        assert (problem["details"]["line"], problem["details"]["column"]) == place
        assert problem["detail"].startswith(f"line {place[0]}, column {place[1]}: ")
    assert "/etc/passwd" not in server.log()


def test_an_error_about_the_graph_names_the_line_that_wrote_the_node(server: Server) -> None:
    text = 'b = Builder("g")\nx = b.input("float32", ())\ny = x.expand(2 ** 30, 2 ** 30)\nb.output(y)'
    problem = post(server, text).json()
    assert problem["pointers"] == ["/builder"]
    assert "line 3, column 5" in problem["detail"]
    assert "/nodes/" not in problem["detail"]


def test_lines_stand_alone_in_a_request(server: Server) -> None:
    both = post(server, LINES, graph=graph())
    assert (both.status_code, both.json()["pointers"]) == (400, ["/builder"])
    assert post(server, LINES, stablehlo={"text": ""}).json()["pointers"] == ["/builder"]
    assert post(server, LINES, dims={}).status_code == 400
    assert post(server, LINES, "/translate", shapes=[]).status_code == 400
