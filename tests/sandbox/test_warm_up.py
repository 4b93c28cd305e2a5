"""What is done before the fork server forks: it is told when it fails, it leaves nothing behind, it changes no byte."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from service.readiness.readiness import AT_START
from service.sandbox.connection import Connection
from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from service.sandbox.spawn import COMPILING, Spawned
from tensorkiln.errors import CrashedError, UnavailableError
from tests.sandbox.warm_ups import HELD_MIB
from tests.service.failing import INSTALL

LIMITS = Limits(deadline_s=5.0, memory_mib=64, file_mib=4)
HERE = "tests.sandbox.warm_ups"


def isolated(script: str) -> Any:
    """What a script prints, as JSON, in an interpreter with the fork server's settings."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", script], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("warm_up", "reason"),
    [
        ("service.no_such_module:f", r"its warm-up service\.no_such_module:f failed: .*no_such_module"),
        (f"{HERE}:no_such_function", "its warm-up .* failed: AttributeError: .*no_such_function"),
        (f"{HERE}:refuse", "its warm-up .* failed: DiagnosticError: no such pass"),
        (f"{HERE}:leave_a_thread", "its warm-up .* failed: RuntimeError: it leaves 2 threads"),
        ("os:abort", "ended with status -6 before it was ready"),
    ],
)
async def test_a_warm_up_that_fails_is_an_error_at_the_start(warm_up: str, reason: str) -> None:
    sandbox = Sandbox((warm_up,))
    with pytest.raises(UnavailableError, match=reason):
        await sandbox.start()
    assert sandbox.pid is None


async def test_why_a_fork_server_has_ended_is_told_to_whoever_looks_later() -> None:
    # Its end leaves the order to begin unread.
    spawned = Spawned(("service.no_such_module:f",))
    await asyncio.to_thread(spawned.process.wait)
    with pytest.raises(UnavailableError, match=r"service\.no_such_module:f failed"):
        await Connection.open(spawned, 5.0)


async def test_memory_of_the_warm_up_is_not_charged_to_a_task() -> None:
    small, large = Sandbox(), Sandbox((f"{HERE}:grow", INSTALL))
    try:
        baseline = (await small.start()).baseline_mib
        assert (await large.start()).baseline_mib >= baseline + HELD_MIB
        await ping(large)
        # Its peak is above the limit, but what it added is not.
        with pytest.raises(CrashedError) as caught:
            await large.run("fail", Message({"how": "segfault"}), LIMITS)
        assert caught.value.details["peak_mib"] >= HELD_MIB > LIMITS.memory_mib
    finally:
        await small.close()
        await large.close()


COMPILE = """
import json, sys
from passes.compile import CompileRequest, compile_request
from tensorkiln.build import Builder, softmax
from tensorkiln.target import Target
left = []
if {warmed}:
    from pkgutil import resolve_name
    from dialect.mlir import ir
    from service.sandbox import confine
    from service.sandbox.spawn import COMPILING
    resolve_name(COMPILING)()
    left = [ir.Context._get_live_count(), confine.threads()]
builder = Builder("g")
rows = builder.symbol("n", 1, 4096)
x, w = builder.input("float32", (rows, 64)), builder.input("float32", (64, 48))
product = x @ w
builder.output(softmax(product), product.cast("bfloat16"))
results = []
for target in ("cpu:x86-64-v3", "cpu:aarch64"):
    made = compile_request(CompileRequest(builder.graph(), Target.parse(target)))
    program = made.program.model_dump(mode="json", exclude={{"stages"}})
    results.append([program, sorted(made.artifacts)])
print(json.dumps([results, left]))
"""


def test_a_warm_up_leaves_an_unused_context_and_one_thread_and_changes_no_byte_of_what_is_compiled_after_it() -> None:
    (cold, _), (warmed, left) = (isolated(COMPILE.format(warmed=warmed)) for warmed in (False, True))
    assert left == [1, 1]
    assert cold == warmed
    assert all(artifacts for _, artifacts in cold)


async def test_a_compiler_that_is_not_rehearsed_first_is_so_in_a_quiet_moment_and_makes_the_same_before() -> None:
    async def rehearsals(sandbox: Sandbox) -> str:
        return (await sandbox.run("ping", Message({"do": "count_rehearsals"}), LIMITS)).header["deed"]

    sandbox = Sandbox((COMPILING, f"{HERE}:do_as_told"), later=(COMPILING,))
    await sandbox.start()
    assert await rehearsals(sandbox) == "0"
    before = await sandbox.run("trial", Message(), AT_START)
    while await rehearsals(sandbox) == "0":
        await asyncio.sleep(0.5)
    after = await sandbox.run("trial", Message(), AT_START)
    assert before.header["artifacts"] == after.header["artifacts"] != []
    await sandbox.close()


async def test_one_that_a_later_warm_up_keeps_from_forking_is_replaced_once_and_says_why() -> None:
    sandbox = Sandbox((f"{HERE}:leave_a_thread",), later=(f"{HERE}:leave_a_thread",))
    try:
        await sandbox.start()
        await ping(sandbox)
        while sandbox.pid is not None:
            await asyncio.sleep(0.01)
        for _ in range(2):
            with pytest.raises(UnavailableError, match=r"leave_a_thread failed: RuntimeError: it leaves 2 threads"):
                await ping(sandbox)
            assert sandbox.pid is None
    finally:
        await sandbox.close()


async def ping(sandbox: Sandbox) -> None:
    assert await sandbox.run("ping", Message({"x": 1}), LIMITS) == Message({"x": 1})
