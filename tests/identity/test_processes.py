"""What reads requests reads those of one caller alone."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.identity.guarded import WORKER, Guarded
from tests.sandbox.processes import state
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import HOOK, children

VALIDATE = encoded({"graph": graph()})


def at_rest(service: Guarded) -> frozenset[int]:
    """The processes that have read a request and are held for further ones of the same caller."""
    return frozenset(pid for pid in children(service.reader) if state(pid) == "T")


def after(service: Guarded, key: str, count: int) -> frozenset[int]:
    """The processes at rest when a request with this key has been read, as soon as they are so many or for 1 s."""
    assert service.send(key, "POST", "/validate", VALIDATE).status_code == 200
    until = time.monotonic() + 1
    while len(found := at_rest(service)) != count and time.monotonic() < until:
        time.sleep(0.005)
    return found


def test_callers_have_processes_of_their_own(home: Path) -> None:
    with Guarded(home) as service:
        mine, of_my_tenant, with_less = service.key("t"), service.key("t"), service.key("t", *WORKER[:1])
        theirs = service.key("b")
        found = after(service, mine, 1)
        assert len(found) == 1
        for other in (of_my_tenant, with_less, theirs):
            # One at a time: on a slow machine, none is to be let go before it has been seen.
            again = after(service, mine, len(found))
            found = after(service, other, len(again) + 1)
            assert len(found) == len(again) + 1
            assert found > again
            assert after(service, other, len(found)) == found


def test_an_answer_is_repeated_to_its_caller_alone(home: Path) -> None:
    with Guarded(home) as service:
        mine, of_my_tenant = service.key("t"), service.key("t")
        body = encoded(compile_body())
        reasons = [
            service.send(key, "POST", "/compile", body).json()["programs"][0]["cache"]["reason"]
            for key in (mine, mine, of_my_tenant, of_my_tenant)
        ]
        assert reasons == ["first request", "same request", "same action", "same request"]


def test_a_test_hook_runs_in_a_process_of_its_own(home: Path) -> None:
    with Guarded(home, test_hooks=1) as service, ThreadPoolExecutor(1) as pool:
        key = service.key("a")
        (first,) = after(service, key, 1)
        sent = pool.submit(service.send, key, "POST", "/compile", encoded(compile_body()), **{HOOK: "prepare:hang"})
        while not (hanging := service.jobs("answer")):
            time.sleep(0.005)
        assert first not in hanging
        for process in hanging:
            os.kill(process, signal.SIGKILL)
        assert sent.result().status_code == 422
