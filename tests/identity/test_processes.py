"""What reads requests reads those of one caller alone."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tests.identity.guarded import GUARDED, WORKER, Guarded
from tests.identity.resting import at_rest, await_none_at_rest
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import HOOK

pytestmark = GUARDED
VALIDATE = encoded({"graph": graph()})


def after(service: Guarded, key: str, count: int) -> frozenset[int]:
    """The processes at rest when a request with this key has been read, as soon as they are so many or for 1 s."""
    assert service.send(key, "POST", "/validate", VALIDATE).status_code == 200
    until = time.monotonic() + 1
    while len(found := at_rest(service.reader)) != count and time.monotonic() < until:
        time.sleep(0.005)
    return found


def test_callers_have_processes_of_their_own(guarded: Guarded) -> None:
    mine, of_my_tenant, with_less = guarded.key("p1"), guarded.key("p1"), guarded.key("p1", *WORKER[:1])
    theirs = guarded.key("p2")
    await_none_at_rest(guarded)
    found = after(guarded, mine, 1)
    assert len(found) == 1
    for other in (of_my_tenant, with_less, theirs):
        # One at a time: on a slow machine, none is to be let go before it has been seen.
        again = after(guarded, mine, len(found))
        found = after(guarded, other, len(again) + 1)
        assert len(found) == len(again) + 1
        assert found > again
        assert after(guarded, other, len(found)) == found


def test_an_answer_is_repeated_to_its_caller_alone(guarded: Guarded) -> None:
    mine, of_my_tenant = guarded.key("p3"), guarded.key("p3")
    body = encoded(compile_body())
    reasons = [
        guarded.send(key, "POST", "/compile", body).json()["programs"][0]["cache"]["reason"]
        for key in (mine, mine, of_my_tenant, of_my_tenant)
    ]
    assert reasons == ["first request", "same request", "same action", "same request"]


def test_a_test_hook_runs_in_a_process_of_its_own(guarded: Guarded) -> None:
    with ThreadPoolExecutor(1) as pool:
        key = guarded.key("p4")
        await_none_at_rest(guarded)
        (first,) = after(guarded, key, 1)
        sent = pool.submit(guarded.send, key, "POST", "/compile", encoded(compile_body()), **{HOOK: "prepare:hang"})
        while not (hanging := guarded.jobs("answer")):
            time.sleep(0.005)
        assert first not in hanging
        while not sent.done():  # one that is killed is begun again
            for process in guarded.jobs("answer"):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.005)
        assert sent.result().status_code == 503
