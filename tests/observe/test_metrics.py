"""What is counted, and who may read it."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from passes.compile import CompileRequest, compile_request
from passes.warm_up import graph as small_graph
from service.identity.caller import Scope
from service.observe import labels
from service.sandbox.tasks import TASKS
from service.store.attempts import MAX_CRASHES
from tensorkiln.errors import CrashedError, ResourceExhaustedError, UnavailableError
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target
from tests.identity.guarded import Guarded, refusal
from tests.observe.figures import Figures
from tests.service.bodies import compile_body, encoded, graph
from tests.service.failing import STAGE
from tests.service.server import Server


def test_a_compile_is_counted_by_stage_and_a_repeated_request_as_a_hit(server: Server) -> None:
    body = encoded(compile_body(graph(rows=91)))
    reordered = encoded(compile_body(graph(name="other", reverse=True, rows=91)))
    before = Figures(server)
    for sent in (body, body, reordered, encoded(compile_body(graph(rows=91), fast_math=True))):
        assert server.compile(sent).status_code == 200
    after = Figures(server)

    def more(name: str, **labels: str) -> float:
        return after(name, **labels) - before(name, **labels)

    assert more("kiln_cache_requests_total", result="miss", reason="first_request") == 1
    assert more("kiln_cache_requests_total", result="miss", reason="differs") == 1
    assert more("kiln_cache_requests_total", result="hit", reason="same_request") == 1
    assert more("kiln_cache_requests_total", result="hit", reason="same_action") == 1
    for stage in ("start", "load", "schedule", "codegen", "return"):
        assert more("kiln_compile_seconds_count", stage=stage, target="cpu", outcome="ok") == 2
    assert more("kiln_compile_seconds_sum", stage="codegen") > 0
    # What compiles for one request alone writes its answer; that from a stored program is written by itself.
    assert more("kiln_job_seconds_count", kind="prepare", outcome="ok") == 3
    assert more("kiln_job_seconds_count", kind="render", outcome="ok") == 1
    assert more("kiln_http_requests_total", route="/compile", method="POST", status="200") == 4
    assert after("kiln_http_requests_in_flight") == 1  # the one that asks
    assert after("kiln_ready", check="canary") == 1


def test_every_program_of_a_request_is_counted_also_when_it_is_repeated(server: Server) -> None:
    body = encoded(compile_body(graph("sqrt", rows=92), ["cpu:x86-64-v2", "cpu:x86-64-v3"]))
    before = Figures(server)
    for prefer in ({}, {}, {"Prefer": "wait=30"}):
        assert server.post("/compile", body, **prefer).status_code == 200
    after, name = Figures(server), "kiln_cache_requests_total"
    assert after(name, result="miss") - before(name, result="miss") == 2
    hit = {"result": "hit", "reason": "same_request"}
    assert after(name, **hit) - before(name, **hit) == 4


@pytest.mark.parametrize(
    ("fails", "name", "found"),
    [
        ("segfault", "kiln_crashes_total", {"signal": "SIGSEGV", "stage": STAGE}),
        ("exit", "kiln_crashes_total", {"signal": "exit", "stage": STAGE}),
        ("garbage", "kiln_crashes_total", {"signal": "none", "stage": STAGE}),
        ("eat_memory", "kiln_sandbox_kills_total", {"cause": "memory"}),
        ("big_file", "kiln_sandbox_kills_total", {"cause": "file"}),
        ("output", "kiln_sandbox_kills_total", {"cause": "output"}),
        ("hang", "kiln_sandbox_kills_total", {"cause": "deadline"}),
    ],
)
def test_a_job_that_is_ended_is_counted_by_what_ended_it(
    server: Server, fails: str, name: str, found: dict[str, str]
) -> None:
    before = Figures(server)(name, **found)
    code = server.compile(encoded(compile_body()), fails).json()["code"]
    figures = Figures(server)
    # What crashes is begun again before that is said of it.
    assert figures(name, **found) == before + (MAX_CRASHES if name == "kiln_crashes_total" else 1)
    assert figures("kiln_compile_seconds_count", stage=STAGE, outcome=code) >= 1


def test_a_fork_server_that_is_started_again_is_counted(server: Server) -> None:
    before = Figures(server)("kiln_fork_server_restarts_total")
    os.kill(server.fork_server, signal.SIGKILL)
    assert server.compile(encoded(compile_body(graph(rows=93)))).status_code == 200
    assert Figures(server)("kiln_fork_server_restarts_total") - before == 1


def test_entries_that_are_damaged_are_counted_when_they_are_healed(home: Path) -> None:
    body = encoded(compile_body())
    with Server(home) as server:
        (program,) = server.compile(body).json()["programs"]
    artifact = program["kernels"][0]["artifact"]
    with Server(home) as server:
        store = home / "store"
        (store / "blobs" / artifact[:2] / artifact).write_bytes(b"damaged")
        for record in (store / "requests").rglob("*/*"):
            record.write_bytes(b"damaged")
        assert server.compile(body).json()["programs"][0]["kernels"][0]["artifact"] == artifact
        figures = Figures(server)
        assert {kind: figures("kiln_cache_corrupt_total", kind=kind) for kind in ("blob", "record", "incomplete")} == {
            "blob": 1,
            "record": 1,
            "incomplete": 1,
        }
        assert figures("kiln_cache_requests_total", result="miss", reason="damaged") == 1


@pytest.mark.xdist_group("narrow")
def test_waiting_requests_are_measured_with_their_age(narrow: Server) -> None:
    body = encoded(compile_body())
    threads = [threading.Thread(target=narrow.compile, args=(body, "hang")) for _ in range(2)]
    for thread in threads:
        thread.start()
    while not (figures := Figures(narrow))("kiln_queue_depth", lane="compiles"):
        time.sleep(0.01)
    assert figures("kiln_queue_running", lane="compiles") == 1
    while not narrow.jobs("compile"):  # its turn has begun, and its process may not be there yet
        time.sleep(0.01)
    while (later := Figures(narrow)("kiln_queue_age_seconds", lane="compiles")) < 0.2:
        assert narrow.jobs("compile")
    assert later > figures("kiln_queue_age_seconds", lane="compiles")
    job = narrow.post("/compile", body, Prefer="respond-async", fails="hang").json()["id"]
    assert Figures(narrow)("kiln_jobs_open") == 1
    narrow.http.delete(f"/jobs/{job}")
    for thread in threads:
        thread.join()


def test_no_label_holds_what_a_user_wrote(server: Server) -> None:
    secret = "avoidable"
    server.compile(encoded(compile_body(graph(name=secret, symbol=secret))))
    server.http.get(f"/{secret}")
    server.http.get(f"/artifacts/{secret}")
    server.http.request(secret.upper(), "/compile")
    server.compile(encoded(compile_body(target=f"cpu:{secret}")))
    figures = Figures(server)
    assert secret not in figures.text.lower()
    assert "/artifacts/{digest}" in figures.values("route")
    assert "other" in figures.values("method")
    stored = {"blob", "record", "program", "answer", "crash", "attempt", "incomplete"}
    assert figures.values("kind") <= {*TASKS, *stored, "member", "claim", "result"}


def test_labels_come_from_sets_that_are_known() -> None:
    assert labels.stage("codegen") == "codegen"
    assert labels.stage("rm -rf") == "other"
    described: list[tuple[Any, str]] = [
        ({"kind": "cuda"}, "cuda"),
        ({"kind": ["x"]}, "other"),
        ("x", "other"),
        (None, "none"),
    ]
    assert [labels.target(target) for target, _ in described] == [label for _, label in described]
    assert labels.reason("differs in options.fast_math") == "differs"
    assert labels.reason("anything else") == "other"
    assert labels.outcome(UnavailableError("x")) == "infra.unavailable"
    assert labels.outcome(KeyError()) == "defect"
    assert labels.cause(ResourceExhaustedError("x", details={"resource": {}})) == "other"
    assert labels.signal_of(CrashedError("x", details={"signal": "SIGNOTHING"})) == "other"


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90"])
def test_every_stage_of_the_compiler_is_known(target: str) -> None:
    stages: list[str] = []
    compile_request(CompileRequest(small_graph(), Target.parse(target), CompileOptions()), on_stage=stages.append)
    assert {*stages} <= labels.STAGES


def test_with_keys_the_figures_are_for_admins(guarded: Guarded) -> None:
    assert refusal(guarded.send(guarded.key("acme"), "GET", "/metrics")) == (403, "auth.forbidden")
    assert guarded.send(guarded.key("operators", Scope.ADMIN), "GET", "/metrics").status_code == 200


def test_an_operator_may_show_the_figures_to_everybody(home: Path) -> None:
    with Guarded(home, metrics="public") as guarded:
        assert guarded.send(None, "GET", "/metrics").status_code == 200
        assert refusal(guarded.send(None, "GET", "/docs")) == (401, "auth.missing")


def test_a_caller_is_told_who_it_is(guarded: Guarded, server: Server) -> None:
    told = guarded.send(guarded.key("acme", Scope.CACHE_READ), "GET", "/whoami").json()
    assert (told["tenant"], told["scopes"], told["is_local"]) == ("acme", ["cache:read"], False)
    assert server.http.get("/whoami").json()["is_local"] is True
