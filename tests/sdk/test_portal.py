"""The one event loop of the blocking clients of a process."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tensorkiln import Client
from tensorkiln.immediate import iterate
from tensorkiln.portal import is_in_portal, portal
from tensorkiln.runner import BlockingRunner
from tests.sdk.scripted import ScriptedServer
from tests.sdk.test_closed import arrived
from tests.service.bodies import graph

VARIABLE = contextvars.ContextVar("variable", default="unset")


async def seen() -> tuple[str, bool, threading.Thread]:
    return VARIABLE.get(), is_in_portal(), threading.current_thread()


def test_all_calls_run_in_one_thread_in_the_context_of_their_callers() -> None:
    context = contextvars.copy_context()
    context.run(VARIABLE.set, "mine")
    first, second = context.run(portal().call, seen()), portal().call(seen())
    assert [first[:2], second[:2]] == [("mine", True), ("unset", True)]
    assert first[2] is second[2] is not threading.current_thread()
    assert not is_in_portal()


class Items:
    """An endless generator of the loop, which notes when it is closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    async def __call__(self) -> AsyncGenerator[int]:
        try:
            for number in range(1_000_000):
                await asyncio.sleep(0)
                yield number
        finally:
            self.closed.set()


def test_items_that_are_garbage_in_the_loop_itself_keep_nobody_waiting() -> None:
    items = Items()
    held = [iterate(BlockingRunner().iterate(items()))]
    assert [next(held[0]) for _ in range(3)] == [0, 1, 2]

    async def collect() -> None:
        held.clear()
        gc.collect()

    portal().call(collect())
    assert items.closed.wait(60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_has_a_portal_of_its_own_and_leaves_that_of_its_parent() -> None:
    portal().call(seen())
    child = os.fork()
    if child == 0:
        # Whatever comes of it, this copy of the tests ends here.
        try:
            os._exit(7 if portal().call(seen())[1] else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert portal().call(seen())[1]


LEAVING = """
import sys, threading
from tensorkiln import Client
client = Client(sys.argv[1], cache_dir=sys.argv[2])
assert client.capabilities() == {}
threading.Thread(target=client.capabilities, daemon=True).start()
sys.stdin.readline()
"""


def test_a_process_ends_in_the_middle_of_a_call_and_says_nothing(scripted: ScriptedServer, tmp_path: Path) -> None:
    scripted.answers_with()
    scripted.answers_with(delay_s=600.0)
    command = [sys.executable, "-W", "error", "-c", LEAVING, scripted.url, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        arrived(scripted, 2)
        _, err = child.communicate("\n", timeout=60)
    assert (child.returncode, err) == (0, "")


INTERRUPTED = """
import asyncio, random, signal, time
from tensorkiln.immediate import iterate
from tensorkiln.portal import portal
from tensorkiln.runner import BlockingRunner

async def items():
    for number in range(5):
        await asyncio.sleep(0)
        yield number

portal().call(asyncio.sleep(0))
draw = random.Random(0)
interrupted = 0
signal.signal(signal.SIGALRM, signal.default_int_handler)
end = time.monotonic() + 0.3
while time.monotonic() < end or not interrupted:
    try:
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 6e-4))
        for _ in iterate(BlockingRunner().iterate(items())): pass
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
assert portal().call(asyncio.sleep(0, 7)) == 7
"""


def test_an_interrupt_anywhere_in_a_call_is_an_interrupt_and_keeps_the_loop() -> None:
    subprocess.run([sys.executable, "-c", INTERRUPTED], stderr=subprocess.DEVNULL, check=True, timeout=60)


UNSEEN = """
import _thread, asyncio
from tensorkiln.portal import portal

async def interrupts(seconds):
    _thread.interrupt_main()
    await asyncio.sleep(seconds)
    return "the job"

async def give_up(job):
    print("gave up", job)

try:
    portal().call(interrupts({seconds}), give_up)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(("seconds", "said"), [(600, "interrupted\n"), (0, "gave up the job\ninterrupted\n")])
def test_a_signal_that_wakes_nobody_is_seen(seconds: int, said: str) -> None:
    """As one is that comes between the last look at signals and the wait."""
    command = [sys.executable, "-c", UNSEEN.replace("{seconds}", str(seconds))]
    assert subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout == said


def test_graphs_of_many_may_come_from_the_same_client(scripted: ScriptedServer, tmp_path: Path) -> None:
    scripted.refuses_with(422, "graph.invalid", "no such var")

    def graphs(client: Client) -> Iterator[dict[str, Any]]:
        for _ in range(3):
            with pytest.raises(Exception, match="no such var"):
                client.validate(graph())
            yield graph()

    with Client(scripted.url, cache_dir=tmp_path) as client:
        found = list(client.compile_many(graphs(client), ["cpu"], concurrency=2))
    assert [str(outcome.error) for outcome in found] == ["no such var"] * 3
