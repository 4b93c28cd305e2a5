"""Jobs: accepted means done, whatever becomes of the service; what happens can be watched, waited for and ended."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.observe.figures import Figures
from tests.service.bodies import V3, compile_body, encoded, graph
from tests.service.failing import STAGE, failing
from tests.service.server import Server, await_end, cache

ASYNC = {"Prefer": "respond-async"}
ENDED = ("done", "failed", "cancelled")


def submit(server: Server, body: bytes, prefer: str = "respond-async", fails: str | None = None) -> httpx2.Response:
    return server.post("/compile", body, fails=fails, Prefer=prefer)


def accepted(server: Server, body: bytes, fails: str | None = None) -> str:
    answer = submit(server, body, fails=fails)
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def ended(server: Server, job: str) -> dict[str, Any]:
    """A job once it has ended; one that never does is for the time-out of the test."""
    while (found := server.http.get(f"/jobs/{job}").json())["state"] not in ENDED:
        time.sleep(0.02)
    return found


def events(server: Server, job: str, last: str = "") -> list[dict[str, Any]]:
    with server.http.stream("GET", f"/jobs/{job}/events", headers={"Last-Event-ID": last} if last else {}) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        blocks = "".join(stream.iter_text()).split("\n\n")
        return [event(block) for block in blocks if block.strip() and not block.startswith(":")]


def event(block: str) -> dict[str, Any]:
    fields = dict(line.split(": ", 1) for line in block.strip().splitlines())
    return {"id": fields["id"], "event": fields["event"], "data": json.loads(fields["data"])}


def test_a_request_that_is_not_waited_for_becomes_a_job(server: Server) -> None:
    body = encoded(compile_body(graph("log2", rows=11)))
    answer = submit(server, body)
    assert answer.status_code == 202
    assert answer.headers["Preference-Applied"] == "respond-async"
    job = answer.json()
    assert answer.headers["Location"] == f"/jobs/{job['id']}"
    assert (job["programs"], job["error"], job["attempt"]) == ([], None, 1)
    done = ended(server, job["id"])
    assert done["state"] == "done"
    assert done["run_ms"] > 0 <= done["queue_ms"]
    assert done.keys() == job.keys()
    plain = server.compile(body).json()
    assert plain["programs"][0]["kernels"] == done["programs"][0]["kernels"]
    assert plain.keys() < done.keys()


def test_a_request_that_is_sent_again_with_its_key_is_the_same_job(server: Server) -> None:
    body, other = encoded(compile_body(graph("log2", rows=41))), encoded(compile_body(graph("log2", rows=42)))

    def sent(body: bytes, key: str) -> httpx2.Response:
        return server.post("/compile", body, **ASYNC, **{"Idempotency-Key": key})

    job = sent(body, "one").json()["id"]
    assert ended(server, job)["state"] == "done"
    again = sent(body, "one")
    assert (again.status_code, again.json()["id"], again.json()["state"]) == (200, job, "done")
    assert sent(body, "two").json()["id"] != job
    assert sent(other, "one").json()["id"] != job
    assert sent(body, "no key").status_code == 422


@pytest.mark.xdist_group("pair")
def test_a_request_that_is_sent_many_times_at_once_with_its_key_is_worked_on_once(patient: Server) -> None:
    body = failing(encoded(compile_body(graph("log2", rows=46))), "hang")
    headers = {**ASYNC, "Idempotency-Key": "many"}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: patient.post("/compile", body, **headers), range(8)))
    (job,) = {answer.json()["id"] for answer in answers}
    while patient.http.get(f"/jobs/{job}").json()["state"] != "running":
        time.sleep(0.02)
    told = Figures(patient)
    assert (told("kiln_queue_running", lane="jobs"), told("kiln_queue_depth", lane="jobs")) == (1, 0)
    assert patient.http.delete(f"/jobs/{job}").json()["state"] == "cancelled"
    assert patient.post("/compile", body, **headers).json()["state"] == "cancelled"


@pytest.mark.xdist_group("pair")
def test_the_end_of_a_job_that_another_service_has_is_waited_for(pair: tuple[Server, Server]) -> None:
    one, two = pair
    body, key = failing(encoded(compile_body(graph("log2", rows=48))), "hang"), {"Idempotency-Key": "elsewhere"}
    first = one.post("/compile", body, **ASYNC, **key).json()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(two.post, "/compile", body, Prefer="wait=60", **key)
        time.sleep(0.3)
        one.http.delete(f"/jobs/{first['id']}")
        answer = waiting.result(timeout=30)
    assert (answer.status_code, answer.json()["id"], answer.json()["state"]) == (200, first["id"], "cancelled")


def test_a_batch_that_is_sent_again_with_its_key_makes_the_same_jobs(server: Server) -> None:
    requests = [compile_body(graph("log2", rows=rows)) for rows in (43, 44, 43)]
    first, again = (
        server.post("/jobs:batch", encoded({"requests": requests}), **{"Idempotency-Key": "b"}).json()["jobs"]
        for _ in range(2)
    )
    ids = [each["id"] for each in first]
    assert len(set(ids)) == 3
    assert [each["id"] for each in again] == ids


def test_a_job_says_which_stages_have_begun(server: Server) -> None:
    body = encoded(compile_body(graph("log2", rows=45), target=[V3, "cpu:x86-64-v2"]))
    phases = ended(server, accepted(server, body))["phases"]
    assert phases[0] == {"stage": "parse", "target": None, "attempt": None}
    for target in (0, 1):
        stages = [each["stage"] for each in phases if each["target"] == target]
        assert stages.index("lower") < stages.index("codegen")


def test_a_job_that_is_done_within_the_wait_is_answered_with_its_programs_and_cancelled_no_more(server: Server) -> None:
    body = encoded(compile_body(graph("log2", rows=12)))
    for prefer in ("wait=30", "respond-async, wait=30"):
        answer = submit(server, body, prefer)
        assert answer.status_code == 200, answer.text
        assert answer.headers["Preference-Applied"] == prefer
        job = answer.json()
        assert answer.headers["Content-Location"] == f"/jobs/{job['id']}"
        assert (job["state"], len(job["programs"])) == ("done", 1)
        assert server.http.get(f"/jobs/{job['id']}").json() == job
    assert server.http.delete(f"/jobs/{job['id']}").json() == job


def test_a_repeated_request_is_done_at_once_and_one_job_with_whatever_key(server: Server) -> None:
    def stored() -> set[str]:
        return {path.name for path in (server.home / "store" / "jobs" / "ended").glob("*/*")}

    body = encoded(compile_body(graph("log2", rows=29)))
    assert server.compile(body).status_code == 200
    before, found = stored(), set[str]()
    for number in range(2):
        key = {"Idempotency_Key": f"again-{number}"}
        for headers in ({}, key, key):
            answer = server.post("/compile", body, Prefer="respond-async", **headers)
            job = answer.json()
            assert (answer.status_code, cache(answer), job["state"]) == (200, ("hit", "same request"), "done")
            assert job["queue_ms"] == 0 <= job["run_ms"]
            assert [each["event"] for each in events(server, job["id"])] == ["queued", "done"]
            found.add(job["id"])
    assert stored() - before == found
    assert len(found) <= 2, "another hour may have begun meanwhile"


def test_a_wait_that_is_too_short_is_answered_with_the_job(server: Server) -> None:
    begin = time.monotonic()
    answer = submit(server, encoded(compile_body()), "wait=1", fails="hang")
    assert answer.status_code == 202
    assert time.monotonic() - begin >= 1
    assert answer.headers["Retry-After"] == "1"
    assert server.http.delete(f"/jobs/{answer.json()['id']}").json()["state"] == "cancelled"


def test_a_failed_compile_is_a_failed_job_and_a_problem_to_those_who_wait(server: Server) -> None:
    job = ended(server, accepted(server, encoded(compile_body()), "segfault"))
    assert (job["state"], job["programs"]) == ("failed", [])
    assert job["error"]["code"] == "compile.crashed"
    assert job["error"]["details"]["signal"] == "SIGSEGV"
    waited = submit(server, encoded(compile_body()), "wait=30", fails="segfault")
    assert (waited.status_code, waited.json()["code"]) == (422, "compile.crashed")
    assert waited.headers["Content-Type"] == "application/problem+json"
    assert server.http.get(waited.headers["Content-Location"]).json()["state"] == "failed"


def test_events_tell_every_stage_in_order_and_resume_where_they_were_left(server: Server) -> None:
    body = encoded(compile_body(graph("exp2", rows=14), [V3, "cpu:aarch64"]))
    told = events(server, accepted(server, body))
    kinds = [each["event"] for each in told]
    assert kinds[:2] == ["queued", "started"]
    assert set(kinds[2:-1]) == {"stage"}
    assert kinds[-1] == "done"
    assert [each["id"] for each in told] == [*(f"1.{count}" for count in range(1, len(told))), "1.done"]
    stages = [each["data"] for each in told[2:-1]]
    assert [stage["stage"] for stage in stages if stage["target"] is None][:3] == ["parse", "validate", "canonicalize"]
    for target in (0, 1):
        names = [stage["stage"] for stage in stages if stage["target"] == target]
        assert names[:2] == ["load", "from-graph"]
        assert names[-2:] == ["codegen", "return"]
    assert told[-1]["data"]["state"] == "done"
    job = ended(server, accepted(server, encoded(compile_body()), "segfault"))
    whole = events(server, job["id"])
    for place, each in enumerate(whole, 1):
        assert events(server, job["id"], each["id"]) == whole[place:]
    assert events(server, job["id"], "of another attempt") == whole


def test_events_arrive_while_the_job_runs(server: Server) -> None:
    job = accepted(server, encoded(compile_body()), "hang")
    with server.http.stream("GET", f"/jobs/{job}/events") as stream:
        lines = stream.iter_lines()
        while STAGE not in next(lines):
            continue
        look = server.http.get(f"/jobs/{job}")
        assert look.json()["state"] == "running"
        server.http.delete(f"/jobs/{job}")
        assert any("cancelled" in line for line in lines)


@pytest.mark.xdist_group("short")
def test_a_job_that_is_cancelled_ends_with_its_process(short: Server) -> None:
    body = encoded(compile_body(graph("log2", rows=49)))
    running = accepted(short, body, "hang")
    compiling = short.at_work()
    waiting = accepted(short, body, "hang")
    for job in (waiting, running):
        answer = short.http.delete(f"/jobs/{job}")
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
        assert short.http.get(f"/jobs/{job}").json() == answer.json()
        assert short.http.delete(f"/jobs/{job}").json() == answer.json()
    await_end(compiling)
    assert short.http.get(f"/jobs/{waiting}").json()["queue_ms"] is None
    assert events(short, running)[-1]["data"]["state"] == "cancelled"
    assert short.compile(body).status_code == 200


def test_a_client_that_has_the_program_gets_no_body(server: Server) -> None:
    job = submit(server, encoded(compile_body(graph("sqrt", rows=16))), "wait=30").json()
    path = f"/programs/{job['programs'][0]['digest']}"
    tag = server.http.get(path).headers["ETag"]
    for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        again = server.http.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    assert server.http.get(path, headers={"If-None-Match": '"x"'}).status_code == 200


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_accepted_jobs_run_after_a_restart(home: Path, number: signal.Signals) -> None:
    bodies = [encoded(compile_body(graph("exp2", rows=rows))) for rows in range(20, 24)]
    server = Server(home, fails=True, concurrency=1)
    hanging = accepted(server, encoded(compile_body()), "hang")
    waiting = [accepted(server, body) for body in bodies[:2]]
    batch = server.post("/jobs:batch", b'{"requests":[%b]}' % b",".join(bodies[2:])).json()["jobs"]
    waiting += [job["id"] for job in batch]
    server.stop(number)
    with Server(home, fails=True, concurrency=2) as again:
        found = [ended(again, job) for job in waiting]
        assert [job["state"] for job in found] == ["done"] * len(bodies)
        assert {job["attempt"] for job in found} == {2}
        begun = again.http.get(f"/jobs/{hanging}").json()
        assert (begun["state"], begun["attempt"]) == ("running", 2)
        assert again.http.delete(f"/jobs/{hanging}").json()["state"] == "cancelled"
        told = events(again, waiting[0], "1.2")
        assert told[0] == {"id": "2.1", "event": "queued", "data": {"attempt": 2}}
        assert told[-1]["event"] == "done"
        # The end of a job is seen a moment before it is on the disk, and then it is open no more.
        while stored(home, "open") or stored(home, "claims"):
            time.sleep(0.01)


def stored(home: Path, folder: str) -> list[Path]:
    """What is in a folder of the jobs, less what is being written, or was when a service was killed."""
    return [path for path in (home / "store" / "jobs" / folder).iterdir() if "#" not in path.name]


def test_a_service_that_stops_lets_those_who_wait_go(home: Path) -> None:
    server = Server(home, fails=True, concurrency=2)
    job = accepted(server, encoded(compile_body()), "hang")
    with ThreadPoolExecutor(2) as pool:
        watched = pool.submit(events, server, job)
        waited = pool.submit(submit, server, encoded(compile_body()), "wait=60", "hang")
        while len(server.jobs("compile")) < 2:
            time.sleep(0.01)
        begin = time.monotonic()
        os.kill(server.pid, signal.SIGTERM)
        assert watched.result()[-1]["event"] == "stage"
        assert waited.result().status_code == 202
    assert server.stop() == 0
    assert time.monotonic() - begin < 20
