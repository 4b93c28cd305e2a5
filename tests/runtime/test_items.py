"""Schedule items other than kernels, and kernels that have nothing to do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tensorkiln.dtypes import DType
from tensorkiln.errors import CallBoundsError, DeviceError, UnsupportedGraphError
from tensorkiln.expr import symbol
from tensorkiln.nodes import CustomAttr
from tensorkiln.program import Program
from tensorkiln.schedule import Dependency, HostCallback, MemoryTransfer, Schedule, Synchronization
from tests.runtime.kernels import DOUBLE, INCREMENT
from tests.runtime.sketch import Sketch

N = symbol("n")


def transfer(source: int, target: int, **fields: object) -> MemoryTransfer:
    given: dict[str, object] = {"dims": (N,), "size_bytes": 4 * N, "src_device": "CPU", "dst_device": "CPU"}
    return MemoryTransfer.model_validate(given | {"transfer_id": 0, "src_var": source, "dst_var": target} | fields)


def test_a_transfer_copies_its_source() -> None:
    sketch = Sketch(symbols={"n": (0, 100)})
    x, copy, out = sketch.buffer([N], "input"), sketch.buffer([N]), sketch.buffer([N], "output")
    sketch.operations.append(transfer(x, copy))
    sketch.elementwise(INCREMENT, "increment", [copy, out])
    values = np.arange(33, dtype=np.float32)
    assert_array_equal(sketch.program()(values, n=33)[0], values + 1)


def test_a_transfer_from_input_to_output_needs_no_kernel() -> None:
    sketch = Sketch(symbols={"n": (0, 100)})
    sketch.operations.append(transfer(sketch.buffer([N], "input"), sketch.buffer([N], "output")))
    values = np.arange(7, dtype=np.float32)
    assert_array_equal(sketch.program()(values, n=7)[0], values)


def test_a_transfer_with_strides_moves_elements_between_layouts() -> None:
    sketch = Sketch(symbols={"n": (1, 100)})
    x, out = sketch.buffer([N, 3], "input"), sketch.buffer([3, N], "output")
    sketch.operations.append(transfer(x, out, dims=(N, 3), src_strides=(3, 1), dst_strides=(1, N), size_bytes=12 * N))
    values = np.arange(15, dtype=np.float32).reshape(5, 3)
    assert_array_equal(sketch.program()(values, n=5)[0], values.T)


def test_a_transfer_that_repeats_a_row_has_a_stride_of_zero() -> None:
    sketch = Sketch(symbols={"n": (1, 100)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([4, N], "output")
    sketch.operations.append(transfer(x, out, dims=(4, N), src_strides=(0, 1), size_bytes=16 * N))
    values = np.arange(5, dtype=np.float32)
    assert_array_equal(sketch.program()(values, n=5)[0], np.broadcast_to(values, (4, 5)))


def test_a_transfer_beyond_its_buffer_is_refused() -> None:
    sketch = Sketch(symbols={"n": (1, 100)})
    sketch.operations.append(transfer(sketch.buffer([N], "input"), sketch.buffer([N], "output"), src_strides=(2,)))
    with pytest.raises(DeviceError, match="transfer item 0 needs 36 bytes of buffer 0, which has 20"):
        sketch.program()(np.zeros(5, np.float32), n=5)


def test_a_transfer_between_dtypes_is_refused() -> None:
    sketch = Sketch(symbols={"n": (1, 100)})
    sketch.operations.append(transfer(sketch.buffer([N], "input"), sketch.buffer([N], "output", DType.INT32)))
    with pytest.raises(DeviceError, match="from float32 to int32"):
        sketch.program()(np.zeros(5, np.float32), n=5)


def test_a_transfer_to_a_device_that_is_not_the_host_is_refused() -> None:
    sketch = Sketch(symbols={"n": (1, 100)})
    sketch.operations.append(transfer(sketch.buffer([N], "input"), sketch.buffer([N], "output"), dst_device="CUDA:1"))
    with pytest.raises(DeviceError, match="item 0 needs the device CUDA:1"):
        sketch.program()


def sort_item(source: int, target: int, *, descending: int = 0) -> HostCallback:
    return HostCallback(
        callback_id=0,
        callback_name="sort",
        input_vars=(source,),
        output_vars=(target,),
        attributes=(
            CustomAttr(name="axis", kind="int", value=0),
            CustomAttr(name="descending", kind="int", value=descending),
        ),
    )


def test_a_host_callback_runs_the_registered_operation_between_kernels() -> None:
    sketch = Sketch(symbols={"n": (0, 100)})
    x, doubled, ordered = sketch.buffer([N], "input"), sketch.buffer([N]), sketch.buffer([N])
    sketch.elementwise(DOUBLE, "double_it", [x, doubled])
    sketch.operations.append(sort_item(doubled, ordered, descending=1))
    sketch.elementwise(INCREMENT, "increment", [ordered, sketch.buffer([N], "output")])
    values = np.array([3, -1, np.inf, 2, 0.5], np.float32)
    program = sketch.program()
    for _ in range(3):
        assert_array_equal(program(values, n=5)[0], np.sort(values * 2)[::-1] + 1)
    assert program.measured_peak_bytes == pytest.approx(program.planned_peak_bytes(n=5), abs=256)


def test_a_host_callback_may_read_an_input_and_write_an_output() -> None:
    sketch = Sketch(symbols={"n": (0, 100)})
    sketch.operations.append(sort_item(sketch.buffer([N], "input"), sketch.buffer([N], "output")))
    values = np.array([3, 1, 2], np.float32)
    assert sketch.program()(values, n=3)[0].tolist() == [1, 2, 3]
    assert values.tolist() == [3, 1, 2]
    assert sketch.program()(values[:0], n=0)[0].shape == (0,)


def test_a_host_callback_that_is_not_registered_is_refused_when_loading() -> None:
    sketch = Sketch()
    callback = HostCallback(callback_id=0, callback_name="no_such_operation", output_vars=(sketch.buffer([1]),))
    sketch.operations.append(callback)
    with pytest.raises(UnsupportedGraphError, match="no_such_operation"):
        sketch.program()


def test_synchronization_between_items_changes_nothing_on_the_host() -> None:
    sketch = Sketch(symbols={"n": (0, 100)})
    x, doubled, out = sketch.buffer([N], "input"), sketch.buffer([N]), sketch.buffer([N], "output")
    sketch.elementwise(DOUBLE, "double_it", [x, doubled])
    sketch.operations.append(Synchronization(sync_id=0, sync_type="fence"))
    sketch.operations.append(Synchronization(sync_id=1, sync_type="event", event=4))
    sketch.elementwise(DOUBLE, "double_it", [doubled, out])
    values = np.arange(8, dtype=np.float32)
    assert_array_equal(sketch.program()(values, n=8)[0], values * 4)


def test_a_kernel_whose_grid_of_threads_is_empty_is_not_launched() -> None:
    sketch = Sketch(symbols={"n": (0, 100)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    sketch.launch(DOUBLE, "double_it", [x, out], groups=N, var_names=("n",), threads=N)
    program = sketch.program()
    assert program(np.zeros(0, np.float32), n=0)[0].shape == (0,)
    assert program.profile(np.zeros(0, np.float32), n=0) == ()
    assert len(program.profile(np.zeros(5, np.float32), n=5)) == 1


def test_a_launch_of_no_work_groups_is_an_error() -> None:
    sketch = Sketch(symbols={"n": (0, 100)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    sketch.launch(DOUBLE, "double_it", [x, out], groups=N, var_names=("n",))
    with pytest.raises(CallBoundsError, match="launch dimension 0 evaluated to non-positive value 0"):
        sketch.program()(np.zeros(0, np.float32), n=0)


def test_items_run_in_the_order_of_their_dependencies_whatever_their_ids() -> None:
    sketch = Sketch(symbols={"n": (1, 100)})
    x, first, out = sketch.buffer([N], "input"), sketch.buffer([N]), sketch.buffer([N], "output")
    sketch.elementwise(INCREMENT, "increment", [first, out])
    sketch.elementwise(DOUBLE, "double_it", [x, first])
    backwards = Schedule.build(sketch.operations, [Dependency(dep_from=1, dep_to=0, dep_vars=(first,))])
    compiled = sketch.compiled().model_copy(update={"schedule": backwards})
    values = np.arange(20, dtype=np.float32)
    assert_array_equal(Program(compiled, sketch.artifacts.__getitem__)(values, n=20)[0], values * 2 + 1)
