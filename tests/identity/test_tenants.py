"""What one tenant has, another does not find, whichever way it asks."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Final

import httpx2
import pytest

from service.identity.caller import Scope
from tests.faults.size import FULL, sized
from tests.identity.guarded import GUARDED, Guarded, artifacts, program, refusal
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server

pytestmark = GUARDED
PROBES: Final = sized(300, 10_000)
UNEXPLAINED: Final = {"status": "miss", "reason": "first request", "nearest": None, "differs": []}
DUMPED = encoded(compile_body(dump_stages=True))


def test_the_same_request_of_two_tenants_is_two_programs(guarded: Guarded) -> None:
    mine, theirs = guarded.key("a1"), guarded.key("b1")
    first, second = (guarded.send(key, "POST", "/compile", DUMPED) for key in (mine, theirs))
    assert [answer.json()["programs"][0]["cache"] for answer in (first, second)] == [
        UNEXPLAINED,
        UNEXPLAINED,
    ]
    assert program(first) != program(second)
    assert artifacts(first) == artifacts(second)


def test_an_answer_is_repeated_to_its_caller_alone(guarded: Guarded) -> None:
    mine, of_my_tenant = guarded.key("p3"), guarded.key("p3")
    body = encoded(compile_body())
    reasons = [
        guarded.send(key, "POST", "/compile", body).json()["programs"][0]["cache"]["reason"]
        for key in (mine, mine, of_my_tenant, of_my_tenant)
    ]
    assert reasons == ["first request", "same request", "same action", "same request"]


@pytest.mark.faults
def test_no_probe_finds_what_another_tenant_has(guarded: Guarded) -> None:
    mine, theirs = guarded.key("a2"), guarded.key("b2")
    answer = guarded.send(mine, "POST", "/compile", encoded(compile_body(graph(rows=7), dump_stages=True)))
    (made,) = answer.json()["programs"]
    paths = [f"/programs/{made['digest']}", f"/artifacts/{artifacts(answer)[0]}"]
    paths += [f"/programs/{made['digest']}/stages/{stage['name']}" for stage in made["stages"] if stage["dump"]]
    paths += [f"/artifacts/{stage['dump']}" for stage in made["stages"] if stage["dump"]]
    for path in paths:
        assert guarded.send(mine, "GET", path).status_code == 200, path
    sent = 0
    taken: dict[bool, list[float]] = {True: [], False: []}

    def probed(path: str, *, is_there: bool) -> httpx2.Response:
        begin = time.perf_counter()
        answer = guarded.send(theirs, "GET", path)
        taken[is_there].append(time.perf_counter() - begin)
        return answer

    while sent < PROBES:
        for path in paths:
            found = probed(path, is_there=True)
            nothing = probed(path.replace(path.split("/")[2], "0" * 64), is_there=False)
            assert refusal(found) == refusal(nothing) == (404, "request.not_found")
            assert found.json()["detail"].replace(path.split("/")[2], "0" * 64) == nothing.json()["detail"]
            sent += 2
        head, none = (
            guarded.send(theirs, "HEAD", f"/artifacts/{digest}") for digest in (artifacts(answer)[0], "0" * 64)
        )
        assert (head.status_code, none.status_code) == (404, 404)
        assert head.headers.get("content-length") == none.headers.get("content-length")
        sent += 2
    there, not_there = median(taken[True]), median(taken[False])
    print(
        f"{sent} probes by another tenant found 0 of {len(paths)} things, and half were answered within "
        f"{1e3 * there:.3f} ms where there is something and {1e3 * not_there:.3f} ms where there is nothing"
    )
    if FULL:
        assert abs(there / not_there - 1) < 0.1


def test_a_miss_does_not_tell_of_another_tenants_graphs(guarded: Guarded) -> None:
    body = encoded(compile_body(graph(rows=9)))
    guarded.send(guarded.key("a3"), "POST", "/compile", body)
    answer = guarded.send(guarded.key("b3"), "POST", "/compile", body)
    assert answer.json()["programs"][0]["cache"] == UNEXPLAINED


def test_tenants_that_share_find_each_others_programs(guarded: Guarded) -> None:
    guarded.tenant("s1", shared=True)
    guarded.tenant("s2", shared=True)
    body = encoded(compile_body(graph(rows=5)))
    first = guarded.send(guarded.key("s1"), "POST", "/compile", body)
    key = guarded.key("s2")
    second = guarded.send(key, "POST", "/compile", body)
    assert second.json()["programs"][0]["cache"]["status"] == "hit"
    assert program(first) == program(second)
    assert guarded.send(key, "GET", f"/programs/{program(first)}").status_code == 200
    assert guarded.send(guarded.key("a4"), "GET", f"/programs/{program(first)}").status_code == 404


def test_a_reproducer_is_for_the_one_who_sent_it(guarded: Guarded) -> None:
    sender, colleague, stranger = guarded.key("a5"), guarded.key("a5"), guarded.key("b5")
    crashed = guarded.send(sender, "POST", "/compile", encoded(compile_body(graph(rows=3))), fails="segfault")
    assert refusal(crashed) == (422, "compile.crashed")
    path = f"/artifacts/{crashed.json()['details']['reproducer']}"
    statuses = [guarded.send(key, "GET", path).status_code for key in (sender, colleague, stranger)]
    assert statuses == [200, 404, 404]


def test_a_job_is_its_tenants(guarded: Guarded) -> None:
    mine, theirs = guarded.key("a6"), guarded.key("b6")
    accepted = guarded.send(mine, "POST", "/compile", encoded(compile_body(graph(rows=6))), Prefer="wait=20")
    assert accepted.status_code == 200
    path = accepted.headers["content-location"]
    for method, each in (("GET", path), ("DELETE", path), ("GET", f"{path}/events")):
        assert refusal(guarded.send(theirs, method, each)) == (404, "request.not_found")
    assert guarded.send(mine, "GET", path).json()["state"] == "done"
    digest = accepted.json()["programs"][0]["digest"]
    for path in (f"/programs/{digest}", f"/programs/{digest}/report", f"/programs/{digest}/report?against={digest}"):
        assert [guarded.send(key, "GET", path).status_code for key in (mine, theirs)] == [200, 404]


def test_a_service_that_begins_to_ask_keeps_the_store_for_tenants_that_share(home: Path) -> None:

    body = encoded(compile_body())
    with Server(home) as server:
        before = server.compile(body)
    with Guarded(home) as server:
        server.tenant("sharing", shared=True)
        key = server.key("sharing")
        path = f"/artifacts/{artifacts(before)[0]}"
        assert server.send(key, "GET", path).status_code == 404
        after = server.send(key, "POST", "/compile", body)
        assert after.json()["programs"][0]["cache"]["status"] == "hit"
        assert server.send(key, "GET", path).status_code == 200
        assert server.send(server.key("else"), "GET", path).status_code == 404


@pytest.mark.parametrize("scopes", [(Scope.ADMIN,), (Scope.COMPILE,)])
def test_a_tenants_weaker_key_does_not_read_its_artifacts(guarded: Guarded, scopes: tuple[Scope, ...]) -> None:
    answer = guarded.send(guarded.key("a7"), "POST", "/compile", DUMPED)
    weak = guarded.send(guarded.key("a7", *scopes), "GET", f"/artifacts/{artifacts(answer)[0]}")
    assert weak.status_code in (403, 404)
