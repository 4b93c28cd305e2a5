"""Storage that several buffers share, constants, and results that are not simply a kernel's output."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from tensorkiln.errors import DeviceError
from tensorkiln.expr import mul, symbol
from tests.runtime.kernels import ADD, DOUBLE, INCREMENT
from tests.runtime.sketch import Sketch

N = symbol("n")


def test_an_update_in_place_returns_the_last_contents() -> None:
    sketch = Sketch(symbols={"n": (1, 1000)})
    x = sketch.buffer([N], "input")
    target = sketch.buffer([N], alias_group=1)
    after = sketch.buffer([N], "output", alias_group=1)
    sketch.elementwise(DOUBLE, "double_it", [x, target])
    sketch.elementwise(INCREMENT, "increment", [target, after])
    values = np.arange(50, dtype=np.float32)
    program = sketch.program()
    np.testing.assert_array_equal(program(values, n=50)[0], values * 2 + 1)
    assert program.planned_peak_bytes(n=64) == 4 * 64, "both are the output"


def test_a_window_sees_what_is_written_to_its_storage() -> None:
    sketch = Sketch(symbols={"n": (1, 1000)})
    x = sketch.buffer([N], "input")
    whole = sketch.buffer([2 * N], "output", alias_group=7)
    low = sketch.buffer([N], alias_group=7)
    high = sketch.buffer([N], alias_group=7, offset=mul(4, N))
    sketch.elementwise(DOUBLE, "double_it", [x, low])
    sketch.elementwise(INCREMENT, "increment", [low, high])
    assert whole == 1
    values = np.arange(9, dtype=np.float32)
    (result,) = sketch.program()(values, n=9)
    np.testing.assert_array_equal(result, np.concatenate([values * 2, values * 2 + 1]))


def test_a_window_of_an_input_reads_the_callers_array() -> None:
    sketch = Sketch(symbols={"n": (1, 1000)})
    sketch.buffer([2 * N], "input", alias_group=0)
    low = sketch.buffer([N], alias_group=0)
    high = sketch.buffer([N], alias_group=0, offset=mul(4, N))
    sketch.elementwise(ADD, "add", [low, high, sketch.buffer([N], "output")])
    values = np.arange(20, dtype=np.float32)
    np.testing.assert_array_equal(sketch.program()(values, n=10)[0], values[:10] + values[10:])


def test_a_window_that_leaves_the_input_is_refused_before_anything_runs() -> None:
    sketch = Sketch(symbols={"n": (1, 1000)})
    sketch.buffer([N], "input", alias_group=0)
    beyond = sketch.buffer([N], alias_group=0, offset=4)
    sketch.elementwise(DOUBLE, "double_it", [beyond, sketch.buffer([N], "output")])
    with pytest.raises(DeviceError, match="buffer 1 reaches to byte 44 of an array of 40 bytes"):
        sketch.program()(np.zeros(10, np.float32), n=10)


def test_a_constant_holds_the_bytes_of_its_artifact() -> None:
    table = np.array([10, 20, 30, 40], np.float32)
    sketch = Sketch(symbols={"n": (4, 4)})
    x = sketch.buffer([N], "input")
    constant = sketch.buffer([4], "constant", content=table.tobytes())
    sketch.elementwise(ADD, "add", [x, constant, sketch.buffer([N], "output")])
    np.testing.assert_array_equal(sketch.program()(np.ones(4, np.float32), n=4)[0], table + 1)


def test_a_constant_whose_bytes_do_not_fill_its_shape_is_refused() -> None:
    sketch = Sketch()
    sketch.buffer([4], "constant", content=b"\0" * 12)
    with pytest.raises(DeviceError, match="16 bytes and its artifact 12"):
        sketch.program()


def test_results_may_name_inputs_constants_temporaries_and_one_buffer_twice() -> None:
    sketch = Sketch(symbols={"n": (3, 3)})
    x = sketch.buffer([N], "input")
    constant = sketch.buffer([3], "constant", content=np.array([7, 8, 9], np.float32).tobytes())
    temporary = sketch.buffer([N])
    output = sketch.buffer([N], "output")
    sketch.elementwise(DOUBLE, "double_it", [x, temporary])
    sketch.elementwise(INCREMENT, "increment", [temporary, output])
    for buffer in (x, constant, temporary, output):
        sketch.bind(buffer, sketch.outputs)
    values = np.array([1, 2, 3], np.float32)
    results = sketch.program()(values, n=3)
    assert [result.tolist() for result in results] == [[3, 5, 7], [1, 2, 3], [7, 8, 9], [2, 4, 6], [3, 5, 7]]
    for position, one in enumerate(results):
        assert not np.shares_memory(one, values)
        assert not any(np.shares_memory(one, other) for other in results[position + 1 :])


def test_the_input_is_not_changed_when_a_result_is() -> None:
    sketch = Sketch()
    sketch.bind(sketch.buffer([3], "input"), sketch.outputs)
    values = np.array([1, 2, 3], np.float32)
    (result,) = sketch.program()(values)
    result[:] = 0
    assert values.tolist() == [1, 2, 3]


@pytest.mark.parametrize("role", ["input", "constant"])
def test_a_kernel_that_writes_to_an_input_or_a_constant_is_refused(role: str) -> None:
    sketch = Sketch(symbols={"n": (4, 4)})
    x = sketch.buffer([N], "input")
    content = {"constant": b"\0" * 16}.get(role)
    target = sketch.buffer([4], "input" if role == "input" else "constant", content=content)
    sketch.elementwise(DOUBLE, "double_it", [x, target])
    with pytest.raises(ValidationError, match=f"item 0 writes buffer 1, whose storage is the {role}"):
        sketch.compiled()


def test_a_kernel_that_writes_through_a_window_of_an_input_is_refused() -> None:
    sketch = Sketch(symbols={"n": (4, 4)})
    x = sketch.buffer([N], "input", alias_group=3)
    window = sketch.buffer([N], alias_group=3)
    sketch.elementwise(DOUBLE, "double_it", [x, window])
    with pytest.raises(ValidationError, match="item 0 writes buffer 1, whose storage is the input"):
        sketch.compiled()
