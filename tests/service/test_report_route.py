"""GET /programs/{digest}/report."""

from __future__ import annotations

import pytest

from tensorkiln.report.page import content_security_policy
from tests.report.test_report import data_of
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server
from tests.service.test_hostile import is_safe


@pytest.fixture(scope="module")
def programs(server: Server) -> tuple[str, str]:
    """A program for a CPU with the texts of its stages, and one for a GPU without."""
    body = compile_body(graph("exp2", name="mine", symbol="batch"), dump_stages=True)
    (first,) = server.compile(encoded(body)).json()["programs"]
    (second,) = server.compile(encoded({**compile_body(graph("exp2")), "target": "cuda:sm_90"})).json()["programs"]
    return first["digest"], second["digest"]


def test_a_stored_program_is_a_page(server: Server, programs: tuple[str, str]) -> None:
    digest, _ = programs
    answer = server.http.get(f"/programs/{digest}/report")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    data = data_of(answer.text)
    assert data["this", "program"] == server.http.get(f"/programs/{digest}").json()
    assert data["this", "signature"] == server.http.get(f"/programs/{digest}/signature").json()
    assert data["this", "stage:translate"] == server.http.get(f"/programs/{digest}/stages/translate").text
    assert data["this", "seconds"]["translate"] > 0
    assert {side for side, _ in data} == {"this"}


def test_another_program_stands_beside_it(server: Server, programs: tuple[str, str]) -> None:
    digest, other = programs
    data = data_of(server.http.get(f"/programs/{digest}/report", params={"against": other}).text)
    assert data["against", "program"]["digest"] == other
    assert ".visible .entry" in data["against", "stage:ptx"]


def test_a_browser_may_run_nothing_but_the_page(server: Server, programs: tuple[str, str]) -> None:
    answer = server.http.get(f"/programs/{programs[0]}/report")
    assert is_safe(dict(answer.headers))
    # A browser obeys each of the policies.
    (own,) = (each for each in answer.headers.get_list("Content-Security-Policy") if "sandbox" in each)
    assert own == f"{content_security_policy()}; sandbox allow-scripts"
    assert "'none'" in own
    assert "unsafe-inline" not in own


def test_a_page_is_sent_again_when_it_has_changed(server: Server, programs: tuple[str, str]) -> None:
    path = f"/programs/{programs[0]}/report"
    etag = server.http.get(path).headers["ETag"]
    assert server.http.get(path, headers={"If-None-Match": etag}).status_code == 304
    assert server.http.get(path, params={"against": programs[1]}).headers["ETag"] != etag


def test_programs_that_are_not_there_are_said_to_be_missing(server: Server, programs: tuple[str, str]) -> None:
    missing = "0" * 64
    assert server.http.get(f"/programs/{missing}/report").json()["code"] == "request.not_found"
    compared = server.http.get(f"/programs/{programs[0]}/report", params={"against": missing})
    assert (compared.status_code, compared.json()["code"]) == (404, "request.not_found")
    assert server.http.get(f"/programs/{programs[0]}/report", params={"against": "<x>"}).status_code == 422
