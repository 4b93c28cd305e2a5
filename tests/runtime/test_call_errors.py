"""Calls that do not fit the program are refused before anything runs."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import pytest

from tensorkiln.errors import CallBoundsError, CallInputError
from tensorkiln.expr import floordiv, symbol
from tensorkiln.infer import Constraint
from tests.runtime.kernels import ADD, DOUBLE
from tests.runtime.sketch import Sketch
from tests.runtime.test_elementwise import add_program

N, M = symbol("n"), symbol("m")
ONES = np.ones(4, np.float32)


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        ({}, r"the symbol n is missing: pass n=<0\.\.1048576>"),
        ({"n": 4, "m": 4}, "the program has no symbol m; it takes n"),
        ({"m": 4}, "the program has no symbol m"),
        ({"n": -1}, r"symbol n=-1 is outside bounds \[0, 1048576\]"),
        ({"n": 1 << 21}, r"symbol n=2097152 is outside bounds \[0, 1048576\]"),
        ({"n": 4.0}, "the symbol n must be an integer, got 4.0"),
        ({"n": "4"}, "the symbol n must be an integer, got '4'"),
        ({"n": True}, "the symbol n must be an integer, got True"),
        ({"n": np.bool_(True)}, r"the symbol n must be an integer, got (np\.)?True"),
        ({"n": np.array(4)}, r"the symbol n must be an integer, got array\(4\)"),
        ({"n": np.array([4])}, r"the symbol n must be an integer, got array\(\[4\]\)"),
        ({"n": np.timedelta64(4)}, r"the symbol n must be an integer, got .*timedelta64\(4\)"),
        ({"n": np.float32(4)}, r"the symbol n must be an integer, got .*4\.0"),
        ({"n": None}, "the symbol n must be an integer, got None"),
    ],
)
def test_a_symbol_that_is_missing_unknown_or_out_of_bounds_is_call_bounds(symbols: Any, message: str) -> None:
    program = add_program()
    for _ in range(2):
        with pytest.raises(CallBoundsError, match=message) as caught:
            program(ONES, ONES, **symbols)
        assert caught.value.code == "call.bounds"
        program(ONES, ONES, n=4)


def test_a_program_without_symbols_says_so() -> None:
    sketch = Sketch()
    sketch.bind(sketch.buffer([4], "input"), sketch.outputs)
    with pytest.raises(CallBoundsError, match="no symbol n; it takes none"):
        sketch.program()(ONES, n=4)


@pytest.mark.parametrize("name", ["self", "cls", "arrays", "symbols", "program"])
def test_a_symbol_may_have_the_name_of_a_parameter(name: str) -> None:
    sketch = Sketch(symbols={name: (0, 100)})
    buffers = [sketch.buffer([symbol(name)], "input"), sketch.buffer([symbol(name)], "output")]
    sketch.elementwise(DOUBLE, "double_it", buffers, count=name)
    program, sizes = sketch.program(), {name: 4}
    assert program(ONES, **sizes)[0].tolist() == [2.0] * 4
    assert len(program.profile(ONES, **sizes)) == 1
    assert program.planned_peak_bytes(**sizes) > 0
    for call in (lambda: add_program()(ONES, ONES, n=4, **sizes), lambda: add_program().planned_peak_bytes(**sizes)):
        with pytest.raises(CallBoundsError, match=f"the program has no symbol {name}; it takes n"):
            call()


@pytest.mark.parametrize("value", [np.int64(4), np.uint8(4), IntEnum("Size", {"FOUR": 4}).FOUR])
def test_a_numpy_integer_is_a_symbol_value(value: Any) -> None:
    program = add_program()
    for _ in range(2):
        assert program(ONES, ONES, n=value)[0].tolist() == [2.0] * 4
    assert program.planned_peak_bytes(n=value) == program.planned_peak_bytes(n=4)


@pytest.mark.parametrize("value", [True, False, np.array(1)])
def test_a_size_that_is_no_integer_is_refused_where_the_integer_has_a_plan(value: Any) -> None:
    program = add_program()
    program(ONES[:1], ONES[:1], n=1)
    program(ONES[:0], ONES[:0], n=0)
    for call in (
        lambda: program(ONES[:1], ONES[:1], n=value),
        lambda: program.profile(ONES[:1], ONES[:1], n=value),
        lambda: program.planned_peak_bytes(n=value),
    ):
        with pytest.raises(CallBoundsError, match="the symbol n must be an integer"):
            call()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((ONES,), "the program takes 2 arrays, got 1"),
        ((ONES, ONES, ONES), "the program takes 2 arrays, got 3"),
        ((ONES, ONES.astype(np.float64)), r"input 1 \(var 101\) has the dtype float64, but the program takes float32"),
        ((ONES, ONES.astype(">f4")), "has the dtype >f4"),
        ((ONES[:3], ONES), r"input 0 \(var 100\) has the shape \(3,\), but the program takes \(4,\)"),
        ((ONES.reshape(2, 2), ONES), r"has the shape \(2, 2\), but the program takes \(4,\)"),
        ((ONES, [1.0, 1.0, 1.0, 1.0]), r"input 1 \(var 101\) is a list; pass an array of dtype float32"),
    ],
)
def test_arrays_of_the_wrong_count_dtype_or_shape_are_call_input(arrays: Any, message: str) -> None:
    program = add_program()
    for _ in range(2):
        with pytest.raises(CallInputError, match=message) as caught:
            program(*arrays, n=4)
        assert caught.value.code == "call.input"
        program(ONES, ONES, n=4)


def test_bounds_are_reported_before_inputs() -> None:
    with pytest.raises(CallBoundsError):
        add_program()(ONES, n=-1)


def test_a_constraint_between_symbols_is_checked_at_the_call() -> None:
    sketch = Sketch(symbols={"n": (1, 100), "m": (1, 100)})
    sketch.elementwise(
        ADD, "add", [sketch.buffer([N], "input"), sketch.buffer([M], "input"), sketch.buffer([N], "output")]
    )
    sketch.constraints = [
        Constraint("eq", N, M, "/nodes/2", "the operands have the same shape"),
        Constraint("ge", N, 3, "/nodes/4/limits/0", "the slice lies inside"),
    ]
    program = sketch.program()
    assert program(ONES, ONES, n=4, m=4)[0].tolist() == [2.0] * 4
    with pytest.raises(
        CallInputError, match=r"at n=4, m=3: the operands have the same shape \(n == m, but 4 and 3\)"
    ) as caught:
        program(ONES, ONES[:3], n=4, m=3)
    assert caught.value.pointers == ("/nodes/2",)
    with pytest.raises(CallInputError, match="the slice lies inside") as caught:
        program(ONES[:2], ONES[:2], n=2, m=2)
    assert caught.value.pointers == ("/nodes/4/limits/0",)


def test_inputs_are_reported_before_constraints() -> None:
    sketch = Sketch(symbols={"n": (1, 100)})
    sketch.bind(sketch.buffer([N], "input"), sketch.outputs)
    sketch.constraints = [Constraint("ge", N, 50, "/nodes/0", "never here")]
    with pytest.raises(CallInputError, match="has the shape"):
        sketch.program()(ONES, n=5)


def test_a_size_without_a_value_is_call_bounds() -> None:
    sketch = Sketch(symbols={"n": (0, 100)})
    buffers = [sketch.buffer([4], "input"), sketch.buffer([4], "output")]
    sketch.buffer([floordiv(8, N)])
    sketch.launch(DOUBLE, "double_it", buffers, var_names=("n",))
    program = sketch.program()
    assert program(ONES, n=4)[0].tolist() == [2.0] * 4
    with pytest.raises(CallBoundsError, match=r"a size of the program has no value at \{'n': 0\}"):
        program(ONES, n=0)


def test_a_refused_call_leaves_the_program_usable() -> None:
    program = add_program()
    with pytest.raises(CallInputError):
        program(ONES, n=4)
    assert program(ONES, ONES, n=4)[0].tolist() == [2.0] * 4
