"""What may be the value of a symbol: the same for the reference and for a program, on a CPU and on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
import pytest

from tensorkiln import reference
from tensorkiln.build import Builder
from tensorkiln.errors import CallBoundsError
from tensorkiln.graph import Graph
from tensorkiln.program import Program
from tests.compiled import compiled, program
from tests.simt.driver import EmulatedDriver

ONE = np.ones(1, np.float32)
Called = Callable[..., tuple[Any, ...]]


class Size(IntEnum):
    """A subclass of int."""

    ONE = 1


def doubling() -> Graph:
    builder = Builder("doubling")
    x = builder.input("float32", (builder.symbol("n", 0, 9),))
    builder.output(x + x)
    return builder.graph()


def on_gpu(graph: Graph) -> Program:
    compilation = compiled(graph, "cuda:sm_80", texts=["translate"])
    code = {compilation.artifacts[kernel.artifact or ""] for kernel in compilation.program.kernels}
    driver = EmulatedDriver(dict.fromkeys(code, compilation.dumps["translate"]))
    return Program(compilation.program, compilation.artifacts.__getitem__, device=driver)


def ways() -> dict[str, Called]:
    """The ways to compute the graph."""
    graph = doubling()
    return {
        "reference": lambda *arrays, **symbols: reference.evaluate(graph, *arrays, **symbols),
        "cpu": program(compiled(graph)),
        "cuda": on_gpu(graph),
    }


@pytest.mark.parametrize("value", [1, np.int64(1), np.uint8(1), Size.ONE], ids=repr)
def test_an_integer_is_taken(value: Any) -> None:
    for way, call in ways().items():
        assert np.asarray(call(ONE, n=value)[0]).tolist() == [2], way


@pytest.mark.parametrize(
    "value",
    [True, np.bool_(True), np.array(1), np.array([1]), np.timedelta64(1), np.float32(1), 1.0, "1", None],
    ids=repr,
)
def test_anything_else_is_refused_also_where_there_is_a_plan_for_it(value: Any) -> None:
    for way, call in ways().items():
        for _ in range(2):
            with pytest.raises(CallBoundsError) as caught:
                call(ONE, n=value)
            assert caught.value.code == "call.bounds", way
            call(ONE, n=1)
