"""Modules of StableHLO and lines of the builder in the place of a graph, over HTTP."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import httpx2
import numpy as np
import pytest

from dialect.mlir import stablehlo
from tensorkiln.build import Builder, relu
from tensorkiln.build_text import MAX_TEXT_BYTES
from tensorkiln.errors import UnsupportedGraphError
from tests.service.bodies import V3, graph
from tests.service.server import Server
from tests.snippets import ROOT, blocks
from tests.stablehlo.modules import module
from tests.stablehlo.oracle import graph_of

LAYER = module(
    ["4x8xf32", "8x3xf32"],
    """
    %0 = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
    %r0 = stablehlo.tanh %0 : tensor<4x3xf32>
    %r1 = stablehlo.abs %0 : tensor<4x3xf32>""",
    "4x3xf32",
    "4x3xf32",
)


def artifact(text: str, version: str = "1.0.0") -> str:
    """The portable artifact of a module, in base64."""
    return b64encode(stablehlo.serialize_portable_artifact_str(text, version)).decode()


def post(server: Server, source: Any, path: str = "/compile", **more: Any) -> httpx2.Response:
    """The answer about a module, or about the lines of a builder if they are named in `more`."""
    asked = {} if source is None else {"stablehlo": source}
    target = {} if path in ("/validate", "/translate") else {"target": V3}
    return server.http.post(path, json={**asked, **target, **more})


def test_a_module_as_text_as_artifact_and_as_graph_is_one_action(server: Server) -> None:
    (program,) = post(server, {"text": LAYER}).json()["programs"]
    assert [(each["dtype"], each["shape"]) for each in program["inputs"]] == [("float32", [4, 8]), ("float32", [8, 3])]
    assert [each["shape"] for each in program["outputs"]] == [[4, 3], [4, 3]]
    for same in (
        post(server, {"artifact": artifact(LAYER)}),
        post(server, {"artifact": artifact(LAYER, "0.9.0")}),
        post(server, None, graph=json.loads(graph_of(LAYER).to_json())),
    ):
        (again,) = same.json()["programs"]
        assert (again["digest"], again["cache"]["status"]) == (program["digest"], "hit")
    report = post(server, {"text": LAYER}, "/validate").json()
    assert report["valid"]
    assert [each["shape"] for each in report["inputs"]] == [[4, 8], [8, 3]]
    (action,) = post(server, {"artifact": artifact(LAYER)}, "/explain").json()["actions"]
    assert (action["stored"], action["components"]["graph"]) == (True, report["digest"])


@pytest.mark.parametrize(
    ("source", "dims", "pointer"),
    [
        (3, {}, "/stablehlo"),
        ({}, {}, "/stablehlo"),
        ({"text": LAYER, "artifact": ""}, {}, "/stablehlo"),
        ({"module": LAYER}, {}, "/stablehlo"),
        ({"text": 3}, {}, "/stablehlo/text"),
        ({"artifact": "%"}, {}, "/stablehlo/artifact"),
        ({"text": LAYER}, 3, "/dims"),
        *(
            ({"text": LAYER}, {"0.0": bounds}, "/dims")
            for bounds in (4, {"min": 1}, {"min": 2, "max": 1}, {"min": True, "max": 1})
        ),
    ],
)
def test_a_field_of_another_form_is_refused(server: Server, source: Any, dims: Any, pointer: str) -> None:
    answer = post(server, source, dims=dims)
    assert answer.status_code == 400
    (found,) = answer.json()["pointers"]
    assert found.startswith(pointer)
    assert found == pointer or dims


def test_a_graph_a_module_and_lines_stand_alone_in_a_request(server: Server) -> None:
    both: list[tuple[Any, dict[str, Any], list[str]]] = [
        ({"text": LAYER}, {"graph": graph()}, ["/stablehlo"]),
        (None, {"builder": LINES, "graph": graph()}, ["/builder"]),
        ({"text": ""}, {"builder": LINES}, ["/builder"]),
        (None, {}, ["/graph"]),
    ]
    for source, more, pointer in both:
        refused = post(server, source, **more)
        assert (refused.status_code, refused.json()["pointers"]) == (400, pointer)
    assert post(server, None, graph=graph(), dims={}).status_code == 400
    assert post(server, None, builder=LINES, dims={}).status_code == 400
    assert post(server, None, "/translate", builder=LINES, shapes=[]).status_code == 400


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nothing", b""),
        ("no bytecode", b"MLIR"),
        ("a head", b"ML\xefR"),
        ("half", stablehlo.serialize_portable_artifact_str(LAYER, "1.0.0")[:200]),
        ("a version to come", b"ML\xefR\x0dStableHLO_v99.0.0\x00" + bytes(64)),
    ],
)
def test_bytes_other_than_an_artifact_are_an_invalid_graph(server: Server, name: str, kind: bytes) -> None:
    answer = post(server, {"artifact": b64encode(kind).decode()})
    assert (name, answer.status_code, answer.json()["code"]) == (name, 422, "graph.invalid")


def test_damaged_artifacts_are_answered_by_a_typed_error(server: Server) -> None:
    whole = bytearray(stablehlo.serialize_portable_artifact_str(LAYER, "1.0.0"))
    draws = np.random.default_rng(0)
    for _ in range(40):
        damaged = bytearray(whole)
        for place in draws.integers(20, len(damaged), 3):
            damaged[place] ^= int(draws.integers(1, 256))
        answer = post(server, {"artifact": b64encode(bytes(damaged)).decode()}, "/validate")
        assert answer.status_code in (200, 422)
        assert answer.status_code == 200 or answer.json()["code"].startswith(("graph.", "compile."))


def test_an_operation_that_is_not_translated_is_named_with_its_place(server: Server) -> None:
    line = '%r0 = stablehlo.custom_call @lapack(%a0) : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":3:9)'
    problem = post(server, {"text": module(["4xf32"], line, "4xf32")}).json()
    assert problem["code"] == UnsupportedGraphError.code
    assert problem["detail"].startswith("stablehlo.custom_call at model.py:3:9: the custom call 'lapack'")
    assert problem["details"] == {"op": "stablehlo.custom_call", "location": "model.py:3:9"}
    assert "model.py" not in server.log()


LINES = """
from tensorkiln.build import Builder, relu

b = Builder("lines")
n = b.symbol("n", 1, 64)
x, w = b.input("float32", (n, 8)), b.input("float32", (8, 3))
b.output(relu(x @ w))
"""


def test_the_lines_and_the_graph_that_they_write_are_one_action(server: Server) -> None:
    b = Builder("lines")
    n = b.symbol("n", 1, 64)
    x, w = b.input("float32", (n, 8)), b.input("float32", (8, 3))
    b.output(relu(x @ w))
    (program,) = post(server, None, builder=LINES).json()["programs"]
    (other,) = server.http.post("/compile", json={"graph": b.document(), "target": V3}).json()["programs"]
    assert (other["digest"], other["cache"]["status"]) == (program["digest"], "hit")
    assert program["symbols"] == other["symbols"]
    translation = post(server, None, "/translate", builder=LINES).json()
    assert server.http.post("/validate", json={"graph": translation["graph"]}).json()["valid"]
    places = ((6, 8), (6, 36), (7, 15), (7, 10))
    assert set(translation["places"]) == {f"line {line}, column {column}" for line, column in places}
    report = post(server, None, "/validate", builder=LINES).json()
    (action,) = post(server, None, "/explain", builder=LINES).json()["actions"]
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
    answer = post(server, None, "/validate", builder=text)
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["pointers"]) == (status, code, ["/builder"])
    if place is not None:
        assert (problem["details"]["line"], problem["details"]["column"]) == place
        assert problem["detail"].startswith(f"line {place[0]}, column {place[1]}: ")
    assert "/etc/passwd" not in server.log()


def test_an_error_about_the_graph_names_the_line_that_wrote_the_node(server: Server) -> None:
    text = 'b = Builder("g")\nx = b.input("float32", ())\ny = x.expand(2 ** 30, 2 ** 30)\nb.output(y)'
    problem = post(server, None, builder=text).json()
    assert problem["pointers"] == ["/builder"]
    assert "line 3, column 5" in problem["detail"]
    assert "/nodes/" not in problem["detail"]
