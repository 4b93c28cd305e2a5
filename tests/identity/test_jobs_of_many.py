"""Jobs of one tenant leave room to those of others."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.identity.guarded import Guarded, refusal
from tests.service.bodies import compile_body, encoded, graph

ASYNC = {"Prefer": "respond-async"}


def body(rows: int) -> bytes:
    return encoded(compile_body(graph(rows=rows)))


def test_a_tenant_that_leaves_a_place_leaves_it_to_the_jobs_of_others(tmp_path: Path) -> None:
    with Guarded(tmp_path, concurrency=2, tenant_concurrency=1, fails=True) as server:
        flood, other = server.key("flood"), server.key("other")
        hung = {"Prefer": "respond-async", "fails": "hang"}
        held = [server.send(flood, "POST", "/compile", body(rows), **hung) for rows in range(1, 4)]
        paths = [answer.headers["Location"] for answer in held]
        while server.send(flood, "GET", paths[0]).json()["state"] != "running":
            time.sleep(0.02)
        done = server.send(other, "POST", "/compile", body(9), Prefer="wait=30")
        assert (done.status_code, done.json()["state"]) == (200, "done")
        assert [server.send(flood, "GET", path).json()["state"] for path in paths] == ["running", "queued", "queued"]
        for path in paths:
            server.send(flood, "DELETE", path)


def test_the_open_jobs_of_a_tenant_leave_room_for_those_of_others(tmp_path: Path) -> None:
    with Guarded(tmp_path, concurrency=1, queue=7, fails=True) as server:
        flood, other = server.key("flood"), server.key("other")
        hung = {"Prefer": "respond-async", "fails": "hang"}
        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda rows: server.send(flood, "POST", "/compile", body(rows), **hung), range(16)))
        paths = [answer.headers["Location"] for answer in answers if answer.status_code == 202]
        refused = [answer for answer in answers if answer.status_code != 202]
        assert 0 < len(paths) <= 6
        assert {refusal(answer) for answer in refused} == {(429, "rate.limited")}
        assert {answer.json()["details"]["limit"] for answer in refused} == {"open_jobs"}
        accepted = server.send(other, "POST", "/compile", body(99), **ASYNC)
        assert accepted.status_code == 202
        for path in paths:
            server.send(flood, "DELETE", path)
        where = accepted.headers["Location"]
        while (state := server.send(other, "GET", where).json()["state"]) in ("queued", "running"):
            time.sleep(0.05)
        assert state == "done"
