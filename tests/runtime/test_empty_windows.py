"""Windows without elements: their offset means nothing, and their address stays inside their storage."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tensorkiln import reference
from tensorkiln.dtypes import DType
from tensorkiln.errors import DeviceError
from tensorkiln.expr import Dim, mul, symbol
from tests.compiled import compiled, program
from tests.runtime.empty_graphs import CASES, EmptyCase, arrays_of
from tests.runtime.kernels import ADD, DOUBLE, INCREMENT
from tests.runtime.sketch import Sketch
from tests.runtime.test_items import sort_item, transfer

N = symbol("n")
OFFSETS = (4, 4 * N + 4, 4 * N - 4, 4 * N - (1 << 40), 1 << 40)
"""In bytes; at n = 0 all are outside a storage without bytes."""
NOTHING = np.zeros(0, np.float32)

DISTANCE = """
define void @distance(ptr %buffers, ptr %vals, i64 %first, i64 %last) {
  %s1 = getelementptr ptr, ptr %buffers, i64 1
  %s2 = getelementptr ptr, ptr %buffers, i64 2
  %p0 = load ptr, ptr %buffers
  %p1 = load ptr, ptr %s1
  %p2 = load ptr, ptr %s2
  %from = ptrtoint ptr %p0 to i64
  %to = ptrtoint ptr %p1 to i64
  %bytes = sub i64 %to, %from
  store i64 %bytes, ptr %p2
  ret void
}
"""
"""Writes how many bytes the second buffer starts behind the first."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_graph_gives_what_the_reference_gives(case: EmptyCase) -> None:
    graph = case.graph()
    called = program(compiled(graph))
    for n in case.sizes:
        arrays = arrays_of(graph, n)
        for one, other in zip(called(*arrays, n=n), reference.evaluate(graph, *arrays, n=n), strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_window_of_an_input_is_at_its_start(offset: Dim) -> None:
    sketch = Sketch(symbols={"n": (0, 1000)})
    x = sketch.buffer([2 * N], "input", alias_group=0)
    window = sketch.buffer([N], alias_group=0, offset=offset)
    sketch.bind(window, sketch.outputs)
    sketch.launch(DISTANCE, "distance", [x, window, sketch.buffer([], "output", DType.INT64)])
    called = sketch.program()
    for empty, distance in (called(NOTHING, n=0), called.bind({100: NOTHING})(n=0)):
        assert (empty.dtype, empty.shape, int(distance)) == (np.float32, (0,), 0)


def test_a_window_with_elements_is_at_its_offset() -> None:
    sketch = Sketch(symbols={"n": (0, 1000)})
    x = sketch.buffer([2 * N], "input", alias_group=0)
    window = sketch.buffer([N], alias_group=0, offset=4 * N - 4)
    sketch.launch(DISTANCE, "distance", [x, window, sketch.buffer([], "output", DType.INT64)])
    assert int(sketch.program()(np.zeros(10, np.float32), n=5)[0]) == 16


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_window_of_a_constant_is_at_its_start(offset: Dim) -> None:
    sketch = Sketch(symbols={"n": (0, 2)})
    table = sketch.buffer([4], "constant", alias_group=0, content=np.arange(4, dtype=np.float32).tobytes())
    window = sketch.buffer([N], alias_group=0, offset=offset)
    sketch.bind(window, sketch.outputs)
    sketch.launch(DISTANCE, "distance", [table, window, sketch.buffer([], "output", DType.INT64)])
    empty, distance = sketch.program()(n=0)
    assert (empty.shape, int(distance)) == ((0,), 0)


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_window_of_a_temporary_takes_no_room(offset: Dim) -> None:
    sketch = Sketch(symbols={"n": (0, 1000)})
    x = sketch.buffer([N], "input")
    whole, window = sketch.buffer([N], alias_group=1), sketch.buffer([N], alias_group=1, offset=offset)
    sketch.elementwise(DOUBLE, "double_it", [x, whole])
    sketch.elementwise(INCREMENT, "increment", [whole, window])
    sketch.launch(DISTANCE, "distance", [whole, window, sketch.buffer([], "output", DType.INT64)])
    called = sketch.program()
    assert int(called(NOTHING, n=0)[0]) == 0
    assert called.planned_peak_bytes(n=0) == 8, "the distance"


def test_windows_of_a_result_are_updated_in_place() -> None:
    sketch = Sketch(symbols={"n": (0, 1000)})
    x = sketch.buffer([N], "input")
    sketch.buffer([2 * N], "output", alias_group=7)
    low = sketch.buffer([N], alias_group=7)
    high = sketch.buffer([N], "output", alias_group=7, offset=mul(4, N))
    sketch.buffer([N], "output", alias_group=7, offset=4 * N - 4)
    sketch.elementwise(DOUBLE, "double_it", [x, low])
    sketch.elementwise(INCREMENT, "increment", [low, high])
    called, values = sketch.program(), np.array([5, 7], np.float32)
    assert [result.shape for result in called(NOTHING, n=0)] == [(0,), (0,), (0,)]
    whole, upper, middle = called(values, n=2)
    assert (whole.tolist(), upper.tolist(), middle.tolist()) == ([10, 14, 11, 15], [11, 15], [14, 11])
    assert called.planned_peak_bytes(n=0) == 0


def move_a_window(sketch: Sketch) -> None:
    """A callback and two transfers of the last `n` elements but one of an input."""
    sketch.buffer([2 * N], "input", alias_group=0)
    window = sketch.buffer([N], alias_group=0, offset=4 * N - 4)
    sketch.operations.append(sort_item(window, sketch.buffer([N], "output")))
    sketch.operations.append(transfer(window, sketch.buffer([N], "output")))
    sketch.operations.append(transfer(window, sketch.buffer([2 * N], "output"), dst_strides=(2,)))


def test_transfers_and_callbacks_take_windows() -> None:
    sketch = Sketch(symbols={"n": (0, 1000)})
    move_a_window(sketch)
    called = sketch.program()
    assert [result.shape for result in called(NOTHING, n=0)] == [(0,), (0,), (0,)]
    first, second, _ = called(np.array([1, 9, 2, 8], np.float32), n=2)
    assert_array_equal((first, second), ([2, 9], [9, 2]))


@pytest.mark.parametrize("role", ["input", "temp", "output"])
def test_a_window_with_elements_before_its_storage_is_refused(role: str) -> None:
    sketch = Sketch(symbols={"n": (0, 1000)})
    x = sketch.buffer([2 * N], "input", alias_group=0)
    if role != "input":
        sketch.buffer([2 * N], "output" if role == "output" else "temp", alias_group=1)
    window = sketch.buffer([N], alias_group=0 if role == "input" else 1, offset=4 * N - 8)
    sketch.elementwise(ADD, "add", [x, window, sketch.buffer([N], "output")])
    called = sketch.program()
    called(NOTHING, n=0)
    with pytest.raises(DeviceError, match=f"buffer {window} has the offset -4 and the size 4"):
        called(np.zeros(2, np.float32), n=1)


@pytest.mark.parametrize("offset", [0, 4, -4])
def test_a_negative_size_is_refused(offset: int) -> None:
    sketch = Sketch(symbols={"n": (0, 1000)})
    x = sketch.buffer([N], "input", alias_group=0)
    window = sketch.buffer([N], alias_group=0, offset=offset)
    sketch.buffers[window] = sketch.buffers[window].model_copy(update={"size_bytes": 4 * N - 4})
    sketch.elementwise(ADD, "add", [x, window, sketch.buffer([N], "output")])
    with pytest.raises(DeviceError, match=f"buffer 1 has the offset {offset} and the size -4"):
        sketch.program()(NOTHING, n=0)


def test_a_window_that_has_elements_and_no_bytes_is_refused() -> None:
    sketch = Sketch(symbols={"n": (0, 1000)})
    sketch.buffer([N], "input", alias_group=0)
    window = sketch.buffer([N], alias_group=0, offset=1 << 40)
    sketch.buffers[window] = sketch.buffers[window].model_copy(update={"size_bytes": 0})
    sketch.bind(window, sketch.outputs)
    with pytest.raises(DeviceError, match=r"buffer 1 has 0 bytes and the shape \(2,\)"):
        sketch.program()(np.zeros(2, np.float32), n=2)
