"""Every request is one line, which says what happened and nothing that the user wrote."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from secrets import token_hex
from typing import Any

from service.identity.caller import Scope
from service.store.attempts import MAX_CRASHES
from tests.identity.guarded import Guarded
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


def lines(server: Server, count: int, since: int = 0, **wanted: Any) -> list[dict[str, Any]]:
    """The lines of a log with these values, in order, once there are so many: a line follows its answer."""
    while len(found := _lines(server, since, wanted)) < count:
        time.sleep(0.01)
    return found


def _lines(server: Server, since: int, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, whole_lines(server)[since:]) if wanted.items() <= line.items()]


def whole_lines(server: Server) -> list[str]:
    # The last one may be half written.
    return server.log().rpartition("\n")[0].splitlines()


def told_so_far(server: Server) -> int:
    """How many lines there are once those of all earlier requests are: one more request has the last."""
    trace = token_hex(16)
    server.http.get("/healthz", headers={"traceparent": f"00-{trace}-{'b' * 16}-01"})
    while not any(trace in line for line in whole_lines(server)):
        time.sleep(0.01)
    return len(whole_lines(server))


def test_a_request_is_one_line_with_its_route_status_and_time(server: Server) -> None:
    since = told_so_far(server)
    server.http.get("/healthz")
    server.http.get("/artifacts/" + "0" * 64)
    server.http.get("/nowhere/at/all")
    server.http.post("/compile", content=b"{", headers={"Content-Type": "text/plain"})
    told = lines(server, 4, since, event="request")
    assert [(line["method"], line["route"], line["status"]) for line in told] == [
        ("GET", "/healthz", 200),
        ("GET", "/artifacts/{digest}", 404),
        ("GET", "none", 404),
        ("POST", "/compile", 415),
    ]
    assert all(0 < line["ms"] < 60_000 for line in told)
    assert "nowhere" not in server.log()


def test_a_line_has_the_trace_of_its_request_which_the_answer_names(server: Server) -> None:
    since = told_so_far(server)
    named = server.http.get("/healthz", headers={"traceparent": PARENT})
    assert named.headers["kiln-trace"] == TRACE
    fresh = [server.http.get("/healthz").headers["kiln-trace"] for _ in range(2)]
    garbled = server.http.get("/healthz", headers={"traceparent": "00-nothing\x01"}).headers["kiln-trace"]
    assert len({TRACE, *fresh, garbled}) == 4
    assert all(re.fullmatch(r"[0-9a-f]{32}", trace) for trace in (*fresh, garbled))
    assert [line["trace"] for line in lines(server, 4, since, event="request")] == [TRACE, *fresh, garbled]


def test_no_line_has_anything_of_a_graph_and_a_failure_has_the_trace(home: Path) -> None:
    word = "confidential"
    wire = graph(name=word, symbol=word)
    with Server(home, fails=True, log="debug") as server:
        answers = [
            server.compile(encoded(compile_body(wire))),
            server.compile(encoded(compile_body(wire)), "segfault"),
            server.compile(encoded(compile_body(wire, target=word))),
            server.post("/validate", encoded({"graph": {**wire, word: 1}})),
        ]
        assert [answer.status_code for answer in answers] == [200, 422, 400, 422]
        assert word not in server.log()
        failed = lines(server, MAX_CRASHES, event="a compile failed")
        assert [line["trace"] for line in failed] == [answers[1].headers["kiln-trace"]] * MAX_CRASHES


def test_the_lines_of_a_job_have_its_id_and_its_trace_also_after_a_restart(home: Path) -> None:
    body = encoded(compile_body())
    with Server(home, fails=True) as server:
        headers = {"Prefer": "respond-async", "traceparent": PARENT, "fails": "hang"}
        job = server.post("/compile", body, **headers).json()["id"]
        server.http.get(f"/jobs/{job}")
        told = lines(server, 2, event="request")
        assert [line["route"] for line in told] == ["/compile", "/jobs/{job}"]
        assert [line["job"] for line in told] == [job, job]
    with Server(home, fails=True, compile_deadline_s=1) as server:
        while server.http.get(f"/jobs/{job}").json()["state"] != "failed":
            time.sleep(0.02)
        (failed,) = lines(server, 1, event="a compile failed")
        assert (failed["job"], failed["trace"], failed["code"]) == (job, TRACE, "compile.deadline_exceeded")


def test_a_line_has_the_tenant_and_no_credential(guarded: Guarded) -> None:
    key = guarded.key("observed", Scope.CACHE_READ)
    guarded.send(key, "GET", "/whoami")
    (line,) = lines(guarded, 1, event="request", tenant="observed")
    assert (line["route"], line["status"]) == ("/whoami", 200)
    assert key not in guarded.log()
    assert key[-20:] not in guarded.log()


def test_no_line_has_anything_of_a_header(server: Server) -> None:
    since = told_so_far(server)
    said = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "tracestate": "user=alice password=hunter2 /home/alice/x"}
    for headers in (said, {**said, "traceparent": "password=hunter2"}, {**said, "baggage": "alice=/home/alice"}):
        assert server.http.get("/healthz", headers=headers).status_code == 200
    assert len(lines(server, 3, since, event="request", route="/healthz")) == 3
    assert "alice" not in server.log()
    assert "hunter2" not in server.log()


def test_the_log_level_can_be_limited(home: Path) -> None:
    with Server(home, log="warning", auth="off") as server:
        server.http.get("/healthz")
        assert len(lines(server, 1, level="warning")) == 1
    assert lines(server, 0, event="request") == []
