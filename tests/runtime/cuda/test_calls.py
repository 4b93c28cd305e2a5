"""Calls of a program on a GPU: the same answers as on the host, and the same errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tensorkiln.dtypes import DType
from tensorkiln.errors import CallBoundsError, CallInputError, DeviceError, UnsupportedGraphError
from tensorkiln.expr import mul, symbol
from tensorkiln.infer import Constraint
from tensorkiln.runtime.cuda import DeviceArray
from tensorkiln.schedule import Dependency, HostCallback, Schedule, Synchronization
from tests.runtime.cuda.kernels import ADD, DOUBLE, INCREMENT
from tests.runtime.cuda.sketch import CudaSketch
from tests.runtime.test_items import sort_item, transfer

N = symbol("n")


def chain() -> CudaSketch:
    """`2 * x + 1` by two kernels."""
    sketch = CudaSketch(symbols={"n": (0, 1000)})
    x, between, out = sketch.buffer([N], "input"), sketch.buffer([N]), sketch.buffer([N], "output")
    sketch.elementwise(DOUBLE, "double_it", [x, between])
    sketch.elementwise(INCREMENT, "increment", [between, out])
    return sketch


def test_a_chain_of_kernels_computes_on_the_device() -> None:
    sketch = chain()
    program = sketch.gpu_program(sketch.driver(watched=True))
    for count in (1, 32, 33, 500, 32):
        values = np.arange(count, dtype=np.float32)
        (result,) = program(values, n=count)
        assert isinstance(result, DeviceArray)
        assert (result.shape, result.dtype, result.nbytes) == ((count,), np.float32, 4 * count)
        assert_array_equal(np.asarray(result), values * 2 + 1)


def test_a_result_is_not_waited_for_until_it_is_asked_for() -> None:
    sketch = chain()
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    (result,) = program(np.ones(40, np.float32), n=40)
    stream = result.ready.stream.handle
    assert driver.pending(stream) >= 2, "nothing has run yet"
    result.wait()
    assert driver.pending(stream) == 0
    assert result.numpy().tolist() == [3] * 40


def test_results_are_inputs_of_the_next_call_without_leaving_the_device() -> None:
    sketch = chain()
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    (value,) = program(np.zeros(10, np.float32), n=10)
    for _ in range(5):
        (value,) = program(value, n=10)
    assert driver.log.launches[-1][0] == "increment"
    assert value.numpy().tolist() == [2**6 - 1] * 10


def test_a_grid_without_blocks_launches_nothing() -> None:
    sketch = chain()
    driver = sketch.driver()
    (result,) = sketch.gpu_program(driver)(np.zeros(0, np.float32), n=0)
    assert result.numpy().shape == (0,)
    assert driver.log.launches == []


def test_results_may_name_inputs_constants_temporaries_and_one_buffer_twice() -> None:
    sketch = CudaSketch(symbols={"n": (3, 3)})
    x = sketch.buffer([N], "input")
    constant = sketch.buffer([3], "constant", content=np.array([7, 8, 9], np.float32).tobytes())
    temporary, output = sketch.buffer([N]), sketch.buffer([N], "output")
    sketch.elementwise(ADD, "add", [x, constant, temporary])
    sketch.elementwise(INCREMENT, "increment", [temporary, output])
    for buffer in (x, constant, temporary, output):
        sketch.bind(buffer, sketch.outputs)
    results = sketch.gpu_program()(np.array([1, 2, 3], np.float32), n=3)
    assert [result.numpy().tolist() for result in results] == [
        [9, 11, 13],
        [1, 2, 3],
        [7, 8, 9],
        [8, 10, 12],
        [9, 11, 13],
    ]
    assert len({result.address for result in results}) == 5


def test_windows_of_one_storage_share_their_bytes() -> None:
    sketch = CudaSketch(symbols={"n": (1, 1000)})
    x = sketch.buffer([N], "input")
    sketch.buffer([2 * N], "output", alias_group=7)
    low, high = sketch.buffer([N], alias_group=7), sketch.buffer([N], alias_group=7, offset=mul(4, N))
    sketch.elementwise(DOUBLE, "double_it", [x, low])
    sketch.elementwise(INCREMENT, "increment", [low, high])
    values = np.arange(9, dtype=np.float32)
    (result,) = sketch.gpu_program()(values, n=9)
    assert_array_equal(result.numpy(), np.concatenate([values * 2, values * 2 + 1]))


@pytest.mark.parametrize("device", ["CPU", "CUDA", "CUDA:1"])
def test_a_transfer_copies_on_the_device_whatever_device_it_names(device: str) -> None:
    sketch = CudaSketch(symbols={"n": (0, 100)})
    x, copy, out = sketch.buffer([N], "input"), sketch.buffer([N]), sketch.buffer([N], "output")
    sketch.operations.append(transfer(x, copy, src_device="CUDA", dst_device=device))
    sketch.elementwise(INCREMENT, "increment", [copy, out])
    values = np.arange(33, dtype=np.float32)
    program = sketch.gpu_program()
    assert_array_equal(program(values, n=33)[0].numpy(), values + 1)
    assert program(values[:0], n=0)[0].numpy().shape == (0,)


def test_a_transfer_between_layouts_leaves_what_lies_between_the_elements() -> None:
    sketch = CudaSketch(symbols={"n": (1, 100)})
    x, y = sketch.buffer([N, 3], "input"), sketch.buffer([3, N], "input")
    out = sketch.buffer([3, 2 * N], "output", alias_group=1)
    sketch.operations.append(transfer(y, out, dims=(3, N), dst_strides=(2 * N, 2), size_bytes=12 * N))
    shifted = sketch.buffer([3 * 2 * N - 1], alias_group=1, offset=4)
    strides = {"dims": (N, 3), "src_strides": (3, 1), "dst_strides": (2, 2 * N), "size_bytes": 12 * N}
    sketch.operations.append(transfer(x, shifted, **strides))
    values, others = np.arange(15, dtype=np.float32).reshape(5, 3), np.arange(100, 115, dtype=np.float32).reshape(3, 5)
    (result,) = sketch.gpu_program()(values, others, n=5)
    assert_array_equal(result.numpy()[:, ::2], others)
    assert_array_equal(result.numpy()[:, 1::2], values.T)


def test_a_host_callback_runs_between_kernels() -> None:
    sketch = CudaSketch(symbols={"n": (0, 100)})
    x, doubled, ordered = sketch.buffer([N], "input"), sketch.buffer([N]), sketch.buffer([N])
    sketch.elementwise(DOUBLE, "double_it", [x, doubled])
    sketch.operations.append(sort_item(doubled, ordered, descending=1))
    sketch.elementwise(INCREMENT, "increment", [ordered, sketch.buffer([N], "output")])
    values = np.array([3, -1, np.inf, 2, 0.5], np.float32)
    program = sketch.gpu_program()
    for _ in range(3):
        assert_array_equal(program(values, n=5)[0].numpy(), np.sort(values * 2)[::-1] + 1)
    assert program(values[:0], n=0)[0].shape == (0,)


def test_a_callback_that_is_not_registered_is_refused_when_loading() -> None:
    sketch = CudaSketch()
    callback = HostCallback(callback_id=0, callback_name="no_such_operation", output_vars=(sketch.buffer([1]),))
    sketch.operations.append(callback)
    with pytest.raises(UnsupportedGraphError, match="no_such_operation"):
        sketch.gpu_program()


def test_items_run_in_the_order_of_their_dependencies_and_synchronization_changes_nothing() -> None:
    sketch = CudaSketch(symbols={"n": (1, 100)})
    x, first, out = sketch.buffer([N], "input"), sketch.buffer([N]), sketch.buffer([N], "output")
    sketch.elementwise(INCREMENT, "increment", [first, out])
    sketch.elementwise(DOUBLE, "double_it", [x, first])
    sketch.operations.append(Synchronization(sync_id=0, sync_type="barrier"))
    edges = [Dependency(dep_from=1, dep_to=0, dep_vars=(first,)), Dependency(dep_from=0, dep_to=2, kind="control")]
    compiled = sketch.compiled().model_copy(update={"schedule": Schedule.build(sketch.operations, edges)})
    sketch.compiled = lambda: compiled
    values = np.arange(20, dtype=np.float32)
    assert_array_equal(sketch.gpu_program()(values, n=20)[0].numpy(), values * 2 + 1)


def test_half_precision_and_booleans_come_back_as_they_are() -> None:
    sketch = CudaSketch()
    arrays = [
        np.array([1.5, -2, np.inf], DType.BFLOAT16.numpy),
        np.array([1.5, -2, np.nan], np.float16),
        np.array([True, False]),
        np.array(7, np.uint64),
    ]
    for array in arrays:
        buffer = sketch.buffer(array.shape, "input", DType.from_numpy(array.dtype))
        sketch.bind(buffer, sketch.outputs)
    for result, array in zip(sketch.gpu_program()(*arrays), arrays, strict=True):
        assert result.dtype == array.dtype
        assert_array_equal(result.numpy(), array)


def test_a_value_of_unit_has_a_shape_and_no_bytes() -> None:
    sketch = CudaSketch()
    sketch.bind(sketch.buffer([3], "input", DType.UNIT), sketch.outputs)
    unit = np.ndarray((3,), DType.UNIT.numpy)
    (result,) = sketch.gpu_program()(unit)
    assert (result.numpy().shape, result.nbytes) == ((3,), 0)


def test_the_checks_of_a_call_come_in_their_order_and_before_any_launch() -> None:
    sketch = chain()
    message = "n must be even"
    sketch.constraints = [Constraint("eq", N, 2 * (N // 2), "/nodes/3", message)]
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    values = np.ones(3, np.float32)
    with pytest.raises(CallBoundsError, match="the symbol n is missing"):
        program("not an array")
    with pytest.raises(CallBoundsError, match=r"n=1001 is outside bounds \[0, 1000\]"):
        program(values, n=1001)
    with pytest.raises(CallInputError, match="takes 1 arrays, got 2"):
        program(values, values, n=3)
    with pytest.raises(CallInputError, match="has the dtype float64"):
        program(values.astype(np.float64), n=3)
    with pytest.raises(CallInputError, match=r"has the shape \(3,\), but the program takes \(4,\)"):
        program(values, n=4)
    with pytest.raises(CallInputError, match=r"input 0 .* is a str"):
        program("not an array", n=4)
    with pytest.raises(CallInputError, match=message) as caught:
        program(values, n=3)
    assert caught.value.pointers == ("/nodes/3",)
    assert driver.log.launches == []


def test_a_kernel_that_faults_is_reported_where_its_result_is_asked_for() -> None:
    sketch = CudaSketch(symbols={"n": (1, 100)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    sketch.kernel(DOUBLE, "double_it", [x, out], grid=(8, 1, 1), var_names=("n",))
    broken = DOUBLE.replace("icmp slt i64 %i, %n", "icmp slt i64 %i, 100000")
    sketch.ir[sketch.artifacts[sketch.kernels[0].artifact or ""]] = broken
    driver = sketch.driver(watched=True)
    program = sketch.gpu_program(driver)
    (result,) = program(np.ones(4, np.float32), n=4)
    for ask in (result.numpy, result.wait, lambda: program(np.ones(4, np.float32), n=4)):
        with pytest.raises(DeviceError, match="LAUNCH_FAILED"):
            ask()


def test_arrays_that_are_not_contiguous_are_copied_in_order() -> None:
    program = chain().gpu_program()
    values = np.arange(60, dtype=np.float32)
    assert_array_equal(program(values[::-2], n=30)[0].numpy(), values[::-2] * 2 + 1)


def test_a_scalar_and_an_array_of_the_host_by_dlpack_are_taken() -> None:
    sketch = CudaSketch()
    for shape in ((), (2,)):
        sketch.bind(sketch.buffer(shape, "input"), sketch.outputs)

    class OnHost:
        def __dlpack__(self, **options: object) -> object:
            return np.array([5, 6], np.float32).__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    scalar, vector = sketch.gpu_program()(np.float32(4), OnHost())
    assert scalar.numpy() == 4
    assert vector.numpy().tolist() == [5, 6]


def test_the_profile_times_every_item_on_the_device() -> None:
    sketch = CudaSketch(symbols={"n": (1, 100)})
    x, doubled, ordered = sketch.buffer([N], "input"), sketch.buffer([N]), sketch.buffer([N])
    sketch.elementwise(DOUBLE, "double_it", [x, doubled])
    sketch.operations.append(sort_item(doubled, ordered))
    sketch.operations.append(transfer(ordered, sketch.buffer([N], "output"), src_device="CUDA", dst_device="CUDA"))
    program = sketch.gpu_program()
    program.profile(np.ones(100, np.float32), n=100)
    items = program.profile(np.ones(100, np.float32), n=100)
    assert [(item.item_id, item.op, item.name) for item in items] == [
        (0, "kernel", "double_it"),
        (1, "host_callback", "sort"),
        (2, "memory_transfer", "transfer_0"),
    ]
    assert all(item.ns > 0 for item in items)
    assert items[0].launch is not None
    assert (items[0].launch.global_size, items[0].launch.local_size) == ((4, 1, 1), (32, 1, 1))
