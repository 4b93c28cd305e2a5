"""One kernel: inputs in, fresh outputs out."""

from __future__ import annotations

import numpy as np
import pytest

from tensorkiln.dtypes import DType
from tensorkiln.expr import symbol
from tensorkiln.program import Program
from tests.runtime.kernels import ADD, COPY, elementwise
from tests.runtime.sketch import Sketch

N = symbol("n")


def add_program() -> Program:
    sketch = Sketch(symbols={"n": (0, 1 << 20)})
    left, right = sketch.buffer([N], "input"), sketch.buffer([N], "input")
    sketch.elementwise(ADD, "add", [left, right, sketch.buffer([N], "output")])
    return sketch.program()


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000])
def test_a_symbolic_size_is_given_by_name_at_each_call(count: int) -> None:
    left, right = np.arange(count, dtype=np.float32), np.ones(count, np.float32)
    (result,) = add_program()(left, right, n=count)
    np.testing.assert_array_equal(result, left + right)
    assert result.dtype == np.float32


def test_one_program_runs_at_many_sizes_in_any_order() -> None:
    program = add_program()
    for count in [64, 3, 64, 100, 3, 99, 101, 64]:
        values = np.random.default_rng(count).random(count, np.float32)
        np.testing.assert_array_equal(program(values, values, n=count)[0], values + values)


def test_results_of_two_calls_share_no_memory() -> None:
    program = add_program()
    ones = np.ones(8, np.float32)
    first = program(ones, ones, n=8)[0]
    second = program(first, ones, n=8)[0]
    assert first.tolist() == [2.0] * 8
    assert second.tolist() == [3.0] * 8
    assert not np.shares_memory(first, second)
    assert first.flags.writeable


def test_results_start_on_a_cache_line() -> None:
    ones = np.ones(8, np.float32)
    assert add_program()(ones, ones, n=8)[0].ctypes.data % 64 == 0


def test_the_same_array_may_be_every_input() -> None:
    values = np.arange(20, dtype=np.float32)
    np.testing.assert_array_equal(add_program()(values, values, n=20)[0], values * 2)


def test_an_input_that_is_not_contiguous_is_taken_as_it_reads() -> None:
    values = np.arange(40, dtype=np.float32)[::2]
    reverse = values[::-1]
    np.testing.assert_array_equal(add_program()(values, reverse, n=20)[0], values + reverse)


def test_an_input_that_is_not_aligned_is_taken_as_it_reads() -> None:
    raw = np.zeros(81, np.uint8)
    unaligned = raw[1:].view(np.float32)
    unaligned[:] = np.arange(20)
    assert not unaligned.flags.aligned
    np.testing.assert_array_equal(add_program()(unaligned, unaligned, n=20)[0], np.arange(20) * 2)


def test_a_read_only_input_is_accepted() -> None:
    values = np.ones(4, np.float32)
    values.flags.writeable = False
    assert add_program()(values, values, n=4)[0].tolist() == [2.0] * 4


def test_code_may_call_what_moves_bytes_in_the_process() -> None:
    sketch = Sketch(symbols={"n": (1, 64)})
    sketch.launch(COPY, "copy_it", [sketch.buffer([N], "input"), sketch.buffer([N], "output")], var_names=("n",))
    values = np.linspace(-3, 3, 50, dtype=np.float32)
    np.testing.assert_array_equal(sketch.program()(values, n=50)[0], values)


@pytest.mark.parametrize(
    ("dtype", "element", "body"),
    [
        (DType.FLOAT64, "double", "  %y = fadd double %x0, %x0"),
        (DType.BFLOAT16, "i16", "  %y = or i16 %x0, 0"),
        (DType.FLOAT16, "half", "  %y = fneg half %x0"),
        (DType.UINT64, "i64", "  %y = xor i64 %x0, -1"),
        (DType.BOOL, "i8", "  %y = xor i8 %x0, 1"),
    ],
)
def test_arrays_arrive_and_leave_in_their_own_dtype(dtype: DType, element: str, body: str) -> None:
    sketch = Sketch(symbols={"n": (1, 64)})
    buffers = [sketch.buffer([N], "input", dtype), sketch.buffer([N], "output", dtype)]
    sketch.elementwise(elementwise("unary", 1, body, element), "unary", buffers)
    values = (np.arange(30) % 2).astype(dtype.numpy)
    (result,) = sketch.program()(values, n=30)
    expected = {
        DType.FLOAT64: values + values,
        DType.BFLOAT16: values,
        DType.FLOAT16: -values if dtype is DType.FLOAT16 else values,
        DType.UINT64: ~values if dtype is DType.UINT64 else values,
        DType.BOOL: ~values if dtype is DType.BOOL else values,
    }[dtype]
    assert result.dtype == dtype.numpy
    np.testing.assert_array_equal(result, expected)


def test_a_scalar_is_an_array_of_rank_zero() -> None:
    sketch = Sketch(symbols={"n": (1, 1)})
    sketch.elementwise(ADD, "add", [sketch.buffer([], "input")] * 2 + [sketch.buffer([], "output")])
    (result,) = sketch.program()(np.float32(21.0), n=1)
    assert result.shape == ()
    assert float(result) == 42.0


def test_a_unit_value_is_an_array_without_bytes() -> None:
    sketch = Sketch()
    sketch.buffer([3], "output", DType.UNIT)
    (result,) = sketch.program()()
    assert result.shape == (3,)
    assert result.dtype.itemsize == 0
