"""Memory that the machine does not have: an error that says for what and how much, and smaller calls go on."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tensorkiln.errors import DeviceError
from tensorkiln.expr import symbol
from tensorkiln.program import Program
from tests.runtime.kernels import DOUBLE
from tests.runtime.sketch import Sketch

M, N = symbol("m"), symbol("n")
HUGE = 1 << 33
"""Elements of 4 bytes."""
ROOM = 1 << 30
"""Bytes that a child may have more than it has already."""
ONES = np.ones(4, np.float32)

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs fork, and Linux's account of memory"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def told_with_little_memory(check: Callable[[], str]) -> str:
    """What `check` says in a child that may have ROOM bytes more than this process."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + ROOM
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            said = check()
        except BaseException as error:
            said = repr(error)
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with open(read) as pipe:
        said = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return said


def sized(*, temporary: bool) -> Program:
    """`2 * x` of m elements; a temporary, or a second result, has n."""
    sketch = Sketch(symbols={"m": (0, 4), "n": (0, 1 << 40)})
    x, out = sketch.buffer([M], "input"), sketch.buffer([M], "output")
    sketch.buffer([N], "temp" if temporary else "output")
    sketch.elementwise(DOUBLE, "double_it", [x, out], "m")
    return sketch.program()


def refusal(program: Program) -> str:
    """The error of a call that needs too much, after which a smaller one gives what it should."""
    with pytest.raises(DeviceError) as caught:
        program(ONES, m=4, n=HUGE)
    assert caught.value.code == "device.unavailable"
    assert caught.value.details["bytes"] >= 4 * HUGE
    assert program(ONES, m=4, n=1)[0].tolist() == [2, 2, 2, 2]
    return str(caught.value)


def test_a_result_that_cannot_be_allocated_is_named_with_its_size() -> None:
    program = sized(temporary=False)
    said = told_with_little_memory(lambda: refusal(program))
    assert said.startswith("output 1 (var 102) takes 34359738368 bytes"), said
    assert "call with smaller sizes" in said


def test_temporaries_that_cannot_be_allocated_are_named_with_their_size() -> None:
    program = sized(temporary=True)
    said = told_with_little_memory(lambda: refusal(program))
    assert said.startswith("the temporaries of a call take 3"), said
    assert "call with smaller sizes" in said


def test_an_input_that_cannot_be_copied_is_named_with_its_size() -> None:
    sketch = Sketch()
    x = sketch.buffer([1 << 14, 1 << 15], "input")
    sketch.bind(x, sketch.outputs)
    program = sketch.program()
    strided = np.broadcast_to(np.float32(1), (1 << 14, 1 << 15))

    def said() -> str:
        with pytest.raises(DeviceError) as caught:
            program(strided)
        return str(caught.value)

    told = told_with_little_memory(said)
    assert told.startswith("a contiguous copy of input 0 (var 100) takes 2147483648 bytes"), told
