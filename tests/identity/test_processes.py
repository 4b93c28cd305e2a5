"""What reads requests reads those of one caller alone."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from service.sandbox.forked import REST_S
from tests.identity.guarded import WORKER, Guarded
from tests.sandbox.processes import state
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import HOOK, children

VALIDATE = encoded({"graph": graph()})


def at_rest(service: Guarded) -> frozenset[int]:
    """The processes that have read a request and are held for further ones of the same caller."""
    return frozenset(pid for pid in children(service.reader) if state(pid) == "T")


def after(service: Guarded, key: str, count: int) -> frozenset[int]:
    """The processes at rest when a request with this key has been read, which are to be so many."""
    assert service.send(key, "POST", "/validate", VALIDATE).status_code == 200
    until = time.monotonic() + REST_S
    while len(found := at_rest(service)) != count and time.monotonic() < until:
        time.sleep(0.005)
    return found


def callers_have_processes_of_their_own(service: Guarded) -> None:
    tenant = f"t{time.monotonic_ns()}"
    mine, of_my_tenant, with_less = service.key(tenant), service.key(tenant), service.key(tenant, *WORKER[:1])
    theirs = service.key(f"{tenant}b")
    first = after(service, mine, 1)
    assert after(service, mine, 1) == first
    for count, other in enumerate((of_my_tenant, with_less, theirs), 2):
        found = after(service, other, count)
        assert len(found) == count
        assert found > first
        assert after(service, other, count) == found
    assert after(service, mine, 4) > first


def test_callers_have_processes_of_their_own(home: Path) -> None:
    with Guarded(home) as service:
        while True:
            begin = time.monotonic()
            try:
                callers_have_processes_of_their_own(service)
                return
            except AssertionError:
                # On a machine that is slow enough, the first process has been let go before the last request is read.
                if time.monotonic() - begin < REST_S:
                    raise
            while at_rest(service):
                time.sleep(0.1)


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
