"""Inputs that are fixed once, and what the items of a program take."""

from __future__ import annotations

import numpy as np
import pytest

from tensorkiln.errors import CallInputError
from tensorkiln.expr import symbol
from tensorkiln.launch import LaunchDims
from tensorkiln.program import Program
from tests.runtime.kernels import ADD, DOUBLE
from tests.runtime.sketch import Sketch
from tests.runtime.test_items import sort_item, transfer

N = symbol("n")
LEFT, RIGHT = 100, 101


def add_program() -> Program:
    sketch = Sketch(symbols={"n": (0, 1000)})
    left, right = sketch.buffer([N], "input"), sketch.buffer([N], "input")
    sketch.elementwise(ADD, "add", [left, right, sketch.buffer([N], "output")])
    return sketch.program()


def test_a_bound_input_is_left_out_of_the_call() -> None:
    program = add_program()
    ten = program.bind({LEFT: np.full(3, 10, np.float32)})
    hundred = program.bind({RIGHT: np.full(3, 100, np.float32)})
    values = np.arange(3, dtype=np.float32)
    assert ten(values, n=3)[0].tolist() == [10, 11, 12]
    assert hundred(values, n=3)[0].tolist() == [100, 101, 102]
    assert program(values, values, n=3)[0].tolist() == [0, 2, 4]


def test_every_input_may_be_bound_one_after_the_other() -> None:
    values = np.arange(3, dtype=np.float32)
    assert add_program().bind({RIGHT: values}).bind({LEFT: values})(n=3)[0].tolist() == [0, 2, 4]


def test_a_bound_array_is_kept_alive_and_not_copied() -> None:
    weights = np.ones(1000, np.float32)
    program = add_program().bind({LEFT: weights})
    before = program(np.zeros(1000, np.float32), n=1000)[0].sum()
    weights[:] = 2
    assert (before, program(np.zeros(1000, np.float32), n=1000)[0].sum()) == (1000, 2000)
    temporary = add_program().bind({LEFT: np.full(500, 3, np.float32)})
    assert temporary(np.zeros(500, np.float32), n=500)[0].sum() == 1500


def test_a_bound_array_that_is_not_contiguous_is_read_in_order() -> None:
    weights = np.arange(6, dtype=np.float32)[::-2]
    assert add_program().bind({LEFT: weights})(np.zeros(3, np.float32), n=3)[0].tolist() == [5, 3, 1]


def test_a_bound_array_must_fit_the_symbols_of_the_call() -> None:
    program = add_program().bind({LEFT: np.ones(3, np.float32)})
    with pytest.raises(CallInputError, match=r"input 0 \(var 100\) has the shape \(3,\), but the program takes \(4,\)"):
        program(np.ones(4, np.float32), n=4)


@pytest.mark.parametrize(
    ("var", "array", "message"),
    [
        (7, np.ones(3, np.float32), "var 7 is not a free input; the free inputs are 100, 101"),
        (RIGHT, np.ones(3, np.float64), r"input 1 \(var 101\) has the dtype float64"),
        (RIGHT, np.ones((3, 1), np.float32), r"has the shape \(3, 1\)"),
        (RIGHT, "weights", "is a str"),
    ],
)
def test_an_array_that_does_not_fit_is_refused_when_it_is_bound(var: int, array: np.ndarray, message: str) -> None:
    with pytest.raises(CallInputError, match=message):
        add_program().bind({var: array})


def test_an_input_cannot_be_bound_twice() -> None:
    ones = np.ones(3, np.float32)
    with pytest.raises(CallInputError, match="var 100 is not a free input; the free inputs are 101"):
        add_program().bind({LEFT: ones}).bind({LEFT: ones})


def test_a_profile_has_the_time_and_launch_of_every_item_in_order() -> None:
    sketch = Sketch(symbols={"n": (1, 1000)})
    x, doubled, ordered = sketch.buffer([N], "input"), sketch.buffer([N]), sketch.buffer([N])
    sketch.elementwise(DOUBLE, "double_it", [x, doubled])
    sketch.operations.append(sort_item(doubled, ordered))
    sketch.operations.append(transfer(ordered, sketch.buffer([N], "output")))
    items = sketch.program().profile(np.ones(100, np.float32), n=100)
    assert [(item.item_id, item.op, item.name) for item in items] == [
        (0, "kernel", "double_it"),
        (1, "host_callback", "sort"),
        (2, "memory_transfer", "transfer_0"),
    ]
    assert all(item.ns > 0 for item in items)
    assert items[0].launch == LaunchDims((7, 1, 1), None)
    assert items[1].launch is None
