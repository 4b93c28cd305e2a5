"""Programs that prepare something: what runs when parameters are bound, what is kept, which records are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorkiln.errors import CallInputError
from tensorkiln.expr import Dim, symbol
from tensorkiln.program import Program
from tensorkiln.spec import CompiledProgram
from tests.compiled import compiled
from tests.passes.test_prepare import graph_of, returned, scaled
from tests.runtime.kernels import ADD, DOUBLE
from tests.runtime.sketch import Sketch
from tests.simt.driver import EmulatedDriver

RNG = np.random.default_rng(3)
X, WEIGHTS = RNG.random((5, 24), np.float32), RNG.random((24, 16), np.float32)
SCALE, SHIFT = RNG.random(16, np.float32), RNG.random(16, np.float32)


def cpu(write: Any = scaled) -> Program:
    made = compiled(graph_of(write))
    return Program(made.program, made.artifacts.__getitem__)


def emulated(write: Any = scaled) -> tuple[Program, EmulatedDriver]:
    made = compiled(graph_of(write), "cuda:sm_80", texts=["translate"])
    (code,) = {made.artifacts[kernel.artifact or ""] for kernel in made.program.kernels}
    driver = EmulatedDriver({code: made.dumps["translate"]})
    return Program(made.program, made.artifacts.__getitem__, device=driver), driver


def ran(program: Program, *arrays: Any, **symbols: int) -> list[int]:
    """The items of one call."""
    return [item.item_id for item in program.profile(*arrays, **symbols)]


def parameters(program: Program) -> dict[int, Any]:
    found = [binding.var for binding in program.compiled.inputs if binding.is_parameter]
    return dict(zip(found, (WEIGHTS, SCALE, SHIFT), strict=True))


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_a_call_runs_what_is_prepared_until_its_parameters_are_bound(kind: str) -> None:
    program = cpu() if kind == "cpu" else emulated()[0]
    expected = np.asarray(program(X, WEIGHTS, SCALE, SHIFT, n=5)[0])
    weights, scale, shift = parameters(program)
    half = program.bind({weights: WEIGHTS})
    most = half.bind({scale: SCALE})
    whole = most.bind({shift: SHIFT})
    at_once = program.bind(parameters(program))
    assert ran(program, X, WEIGHTS, SCALE, SHIFT, n=5) == [0, 1, 2]
    assert ran(half, X, SCALE, SHIFT, n=5) == [0, 1, 2]
    assert ran(most, X, SHIFT, n=5) == [0, 1, 2]
    assert ran(whole, X, n=5) == ran(at_once, X, n=5) == [2]
    for called, arrays in ((half, (X, SCALE, SHIFT)), (most, (X, SHIFT)), (whole, (X,)), (at_once, (X,))):
        assert np.array_equal(np.asarray(called(*arrays, n=5)[0]), expected)
    assert whole.compiled == program.compiled


def test_parameters_are_prepared_at_every_size_of_a_call() -> None:
    program = cpu()
    bound = program.bind(parameters(program))
    for n in (1, 3, 40):
        x = RNG.random((n, 24), np.float32)
        assert np.array_equal(bound(x, n=n)[0], program(x, WEIGHTS, SCALE, SHIFT, n=n)[0])


def test_a_bound_call_allocates_nothing_for_what_is_kept() -> None:
    program = cpu()
    bound = program.bind(parameters(program))
    assert program.planned_peak_bytes(n=5) - bound.planned_peak_bytes(n=5) >= WEIGHTS.nbytes


def test_a_prepared_result_is_the_callers_own() -> None:
    program = cpu(returned)
    square, x = RNG.random((4, 4), np.float32), np.zeros((4, 4), np.float32)
    (var,) = (binding.var for binding in program.compiled.inputs if binding.is_parameter)
    bound = program.bind({var: square})
    first, turned, _ = bound(x)
    first[:], turned[:] = 0, 0
    again = bound(x)
    assert np.array_equal(again[0], square * square)
    assert np.array_equal(again[1], (square * square).T)


def test_more_may_be_bound_when_the_parameters_are() -> None:
    program = cpu()
    bound = program.bind(parameters(program))
    (free,) = (binding.var for binding in program.compiled.inputs if not binding.is_parameter)
    assert np.array_equal(bound.bind({free: X})(n=5)[0], bound(X, n=5)[0])
    with pytest.raises(CallInputError, match=f"is not a free input; the free inputs are {free}"):
        bound.bind({next(iter(parameters(program))): WEIGHTS})


def test_a_gpu_frees_parameters_that_only_prepare_reads() -> None:
    program, driver = emulated()
    bound = program.bind(parameters(program))
    assert driver.log.freed == 3
    assert np.asarray(bound(X, n=5)[0]).shape == (5, 16)


def sketched(prepare: tuple[int, ...], parameter: bool = True, size: Dim = 4, target: int = 3) -> CompiledProgram:
    """The item 0 doubles the input 0 into the buffer 2; the item 1 adds the input 1, into the buffer 3 or `target`."""
    sketch = Sketch(symbols={"n": (0, 9)})
    weights, x = sketch.buffer([size], "input"), sketch.buffer([size], "input")
    doubled, result = sketch.buffer([size]), sketch.buffer([size], "output")
    sketch.launch(DOUBLE, "double_it", [weights, doubled])
    sketch.launch(ADD, "add", [doubled, x, result if target == 3 else doubled])
    record = sketch.compiled().model_dump(mode="json")
    record["inputs"][0]["is_parameter"] = parameter
    record["prepare"] = prepare
    return CompiledProgram.model_validate(record)


@pytest.mark.parametrize(
    ("prepare", "parameter", "message"),
    [
        ((2,), True, r"prepare names the items \[2\], which are not items of the schedule in order"),
        ((1, 0), True, r"prepare names the items \[1, 0\], which are not items"),
        ((0, 0), True, r"prepare names the items \[0, 0\], which are not items"),
        ((0,), False, "item 0 of prepare uses buffer 0, which is not there before a call"),
        ((1,), True, "item 1 of prepare uses buffer 2, which is not there before a call"),
        ((0, 1), True, "item 1 of prepare uses buffer 1, which is not there before a call"),
    ],
)
def test_a_record_that_prepares_what_only_a_call_has_is_refused(
    prepare: tuple[int, ...], parameter: bool, message: str
) -> None:
    assert sketched((0,)).prepare == (0,)
    with pytest.raises(ValueError, match=message):
        sketched(prepare, parameter)


def test_a_record_in_which_a_call_overwrites_what_is_prepared_is_refused() -> None:
    with pytest.raises(ValueError, match="item 0 of prepare uses buffer 2, which is not there before a call"):
        sketched((0,), target=2)


def test_a_record_that_prepares_what_has_the_size_of_a_call_is_refused() -> None:
    with pytest.raises(ValueError, match="item 0 of prepare has a size that depends on symbols"):
        sketched((0,), size=symbol("n"))
