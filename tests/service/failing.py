"""Graphs that say how their compile fails, and a service that heeds them: `python -m tests.service.failing`.

What fails and how is in `tests.service.failures`, which fork servers load and services do not.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from itertools import count
from socket import socket
from subprocess import Popen
from typing import Final

from service.sandbox import spawn
from service.sandbox.levels import Wall

INSTALL: Final = "tests.service.failures:install"
"""The warm-up by which a fork server has that compiler."""
STAGE: Final = "codegen"
"""That in which everything fails, be it a compile or what reads its request."""
COMPILE, READ = 1, 2
NAMES: Final = (
    *("segfault", "abort", "illegal_instruction", "bus_error", "throw", "spin", "hang", "stop", "eat_memory"),
    *("eat_8_gib", "eat_native_memory", "overflow_stack", "exit", "output", "stderr", "garbage", "garbled_json"),
    *("garbled_error", "half_a_frame", "close_socket", "big_file", "many_files", "refuse", "few_operations"),
)
_VAR: Final = 1 << 20
_ALWAYS: Final = "always:"
_READING: Final = "prepare:"
_numbers = count(1)


def start_failing() -> Callable[[socket, str, Sequence[str], Wall], Popen[bytes]]:
    """`spawn.start`, for fork servers that have that compiler beside their own warm-ups."""
    start = spawn.start
    return lambda orders, scratch, warm_ups, wall: start(orders, scratch, (*warm_ups, INSTALL), wall)


def failing(body: bytes, how: str) -> bytes:
    """A request like this one whose compile fails in the way that has this name, or what reads it, with `prepare:`.

    It is another graph each time, and with `always:` the same one.
    """
    request = json.loads(body)
    graph = request["graph"]
    is_known = how.startswith(_ALWAYS)
    what = READ if how.startswith(_READING) else COMPILE
    name = how.removeprefix(_ALWAYS).removeprefix(_READING)
    # An input that nothing reads, of a shape that no other test has.
    shape = [1, 2, 1, 2, what, NAMES.index(name) + 1, 1 if is_known else 64 * next(_numbers) + os.getpid() % 64]
    mark = {"node": "placeholder", "out_var": _VAR, "dtype": "bool", "shape": shape}
    changed = {"nodes": [*graph["nodes"], mark], "input_vars": [*graph["input_vars"], _VAR]}
    return json.dumps({**request, "graph": {**graph, **changed}}).encode()


if __name__ == "__main__":
    from service.readiness import readiness
    from service.server.command import main

    # Tests that wait for readiness to change wait less; tests/observe/test_readiness.py has the time that users wait.
    readiness.__dict__["EVERY_S"] = 1.0
    spawn.start = start_failing()
    sys.exit(main())
