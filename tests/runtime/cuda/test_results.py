"""Results as other libraries see them."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tensorkiln.dtypes import DType
from tensorkiln.errors import DeviceError
from tensorkiln.expr import symbol
from tensorkiln.program import Program
from tensorkiln.runtime.cuda import DeviceArray, capsules
from tensorkiln.runtime.cuda import dlpack_types as types
from tests.runtime.cuda.kernels import DOUBLE
from tests.runtime.cuda.sketch import CudaSketch
from tests.simt.driver import EmulatedDriver

N = symbol("n")
HOST = (types.CPU, 0)
"""A device that NumPy takes tensors of: with it, NumPy reads the emulated device's memory as a consumer."""


class CopyDriver(EmulatedDriver):
    """A device with the program that is running on it: one that is dropped waits for its work."""

    program: Program


def copied(values: np.ndarray[Any, Any], **options: Any) -> tuple[DeviceArray, CopyDriver]:
    """`values` as a result, still to be computed unless a host reads it, which waits for no stream."""
    sketch = CudaSketch()
    sketch.bind(sketch.buffer(values.shape, "input", DType.from_numpy(values.dtype)), sketch.outputs)
    driver = CopyDriver(sketch.ir, eager=options.get("dlpack_device") == HOST, **options)
    driver.program = sketch.gpu_program(driver)
    return driver.program(values)[0], driver


def test_results_are_written_to_no_arrays_of_the_caller() -> None:
    values = np.arange(3, dtype=np.float32)
    _, driver = copied(values)
    with pytest.raises(DeviceError, match="is for a GPU and writes no arrays of its caller; call it"):
        driver.program.run_into([values.copy()], values)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(24, dtype=np.float32).reshape(2, 3, 4),
        np.array(5, np.int16),
        np.zeros((0, 3), np.float64),
        np.array([True, False]),
        np.array([1, 2, 2**63], np.uint64),
    ],
    ids=lambda values: f"{values.dtype}{values.shape}",
)
def test_numpy_takes_a_result_by_dlpack(values: np.ndarray[Any, Any]) -> None:
    result, _ = copied(values, dlpack_device=HOST)
    seen = np.from_dlpack(result)
    assert (seen.dtype, seen.shape) == (values.dtype, values.shape)
    assert_array_equal(seen, values)


def test_an_array_that_a_consumer_holds_outlives_the_result() -> None:
    result, driver = copied(np.arange(1000, dtype=np.float32), dlpack_device=HOST)
    seen = np.from_dlpack(result)
    address = result.address
    assert seen.ctypes.data == address, "not a copy"
    del result
    gc.collect()
    assert any(allocation.address == address for allocation in driver.memory.allocations)
    assert seen.sum() == 499500
    exported = capsules.exported()
    del seen
    assert capsules.exported() == exported - 1


def test_a_consumer_of_the_first_dlpack_gets_a_tensor_without_a_version() -> None:
    result, _ = copied(np.arange(3, dtype=np.float32), dlpack_device=HOST)

    class Old:
        def __dlpack__(self, **options: Any) -> Any:
            return result.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return HOST

    assert np.from_dlpack(Old()).tolist() == [0, 1, 2]


def test_a_capsule_that_nobody_consumes_gives_its_memory_back() -> None:
    result, _ = copied(np.arange(3, dtype=np.float32))
    before = capsules.exported()
    for _ in range(10):
        result.__dlpack__()
    held = result.__dlpack__(max_version=(1, 0))
    assert capsules.exported() <= before + 2
    imported = capsules.Import(held)
    assert imported.tensor.data == result.address
    with pytest.raises(BufferError, match="not a capsule of a tensor"):
        capsules.Import(held)
    del imported, held
    capsules.Import(result.__dlpack__())
    assert capsules.exported() == before


def test_a_consumer_that_refuses_gets_its_own_error() -> None:
    result, _ = copied(np.array([1, 2], ml_dtypes.bfloat16), dlpack_device=HOST)
    for _ in range(3):
        with pytest.raises((RuntimeError, BufferError), match=r"(?i)unsupported dtype"):
            np.from_dlpack(result)
    assert result.numpy().tolist() == [1, 2]


def test_bfloat16_has_a_name_in_dlpack_and_none_in_the_interface() -> None:
    result, _ = copied(np.array([1.5, 2], ml_dtypes.bfloat16))
    imported = capsules.Import(result.__dlpack__())
    tensor = imported.tensor
    assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (4, 16, 1)
    assert not hasattr(result, "__cuda_array_interface__")


@pytest.mark.parametrize(
    ("name", "code"),
    [("float8_e4m3fn", 10), ("float8_e4m3fnuz", 11), ("float8_e5m2", 12), ("float8_e5m2fnuz", 13)],
)
def test_an_8_bit_float_has_a_name_in_dlpack_and_none_in_the_interface(name: str, code: int) -> None:
    result, _ = copied(np.array([1.5, 2], getattr(ml_dtypes, name)))
    imported = capsules.Import(result.__dlpack__())
    tensor = imported.tensor
    assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (code, 8, 1)
    assert not hasattr(result, "__cuda_array_interface__")


@pytest.mark.parametrize("name", ["int4", "uint2", "float4_e2m1fn"])
def test_packed_types_are_exchanged_through_numpy(name: str) -> None:
    result, _ = copied(np.array([1, 0], getattr(ml_dtypes, name)))
    with pytest.raises(BufferError, match=f"no element type for {name}"):
        result.__dlpack__()
    assert not hasattr(result, "__cuda_array_interface__")
    assert result.numpy().astype(np.float32).tolist() == [1, 0]


def test_the_tensor_says_where_it_is_and_how_it_lies() -> None:
    result, _ = copied(np.zeros((2, 3, 4), np.int32), ordinal=2)
    for version in (None, (0, 8), (1, 0), (1, 3), (2, 0)):
        imported = capsules.Import(result.__dlpack__(max_version=version))
        tensor = imported.tensor
        assert (tensor.device.device_type, tensor.device.device_id) == (2, 2)
        assert [tensor.shape[axis] for axis in range(tensor.ndim)] == [2, 3, 4]
        assert [tensor.strides[axis] for axis in range(tensor.ndim)] == [12, 4, 1]
        assert (tensor.data, tensor.byte_offset) == (result.address, 0)
    assert result.__dlpack_device__() == (2, 2)


def test_the_stream_of_a_consumer_waits_for_the_result() -> None:
    for stream in (None, 1, 2):
        result, driver = copied(np.arange(5, dtype=np.float32))
        result.__dlpack__(stream=stream)
        handle = 1 if stream is None else stream
        assert driver.pending(handle) == 1, "the wait"
        assert driver.pending(result.ready.stream.handle) > 0
        with driver.scope():
            driver.synchronize(handle)
        assert driver.memory.read(result.address, 20).view(np.float32).tolist() == [0, 1, 2, 3, 4]
    result, driver = copied(np.arange(5, dtype=np.float32))
    result.__dlpack__(stream=-1)
    assert driver.pending(1) == 0
    with pytest.raises(BufferError, match="DLPack forbids the stream 0"):
        result.__dlpack__(stream=0)


def test_a_consumer_may_ask_for_a_copy() -> None:
    result, _ = copied(np.arange(5, dtype=np.float32), dlpack_device=HOST)
    duplicate = np.from_dlpack(result, copy=True)
    assert duplicate.ctypes.data != result.address
    assert duplicate.tolist() == [0, 1, 2, 3, 4]


def test_a_consumer_may_ask_for_the_host() -> None:
    result, _ = copied(np.arange(5, dtype=np.float32))
    assert np.from_dlpack(result, device="cpu").tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(BufferError, match=r"cannot be had on the device \(1, 0\)"):
        result.__dlpack__(dl_device=HOST, copy=False)
    with pytest.raises(BufferError, match=r"cannot be had on the device \(2, 7\)"):
        result.__dlpack__(dl_device=(2, 7))


def test_the_interface_has_address_type_and_stream() -> None:
    result, driver = copied(np.arange(6, dtype=np.int16).reshape(2, 3))
    interface = result.__cuda_array_interface__
    assert interface == {
        "shape": (2, 3),
        "typestr": "<i2",
        "data": (result.address, False),
        "strides": None,
        "stream": result.ready.stream.handle,
        "version": 3,
    }
    with driver.scope():
        driver.synchronize(interface["stream"])
    assert ctypes.string_at(result.address, 12) == np.arange(6, dtype=np.int16).tobytes()
    empty, _ = copied(np.zeros((0, 2), np.float32))
    assert empty.__cuda_array_interface__["data"][0] == 0


def test_the_array_protocol_copies_and_converts() -> None:
    result, _ = copied(np.array([1.25, 2], np.float32))
    assert np.asarray(result).dtype == np.float32
    assert np.asarray(result, dtype=np.float64).tolist() == [1.25, 2]
    assert (np.asarray(result) + 1).tolist() == [2.25, 3]
    with pytest.raises(ValueError, match="has to be copied"):
        np.asarray(result, copy=False)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_an_array_has_one_owner(duplicate: Callable[[object], object]) -> None:
    result, _ = copied(np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="memory of this process"):
        duplicate(result)


def test_an_array_says_what_it_is() -> None:
    result, _ = copied(np.zeros((2, 3), np.float32))
    assert repr(result) == "<DeviceArray float32 (2, 3) on CUDA device 0>"
    assert (len(result), result.ndim, result.size, result.nbytes, result.device) == (2, 2, 6, 24, 0)
    scalar, _ = copied(np.array(1, np.float32))
    with pytest.raises(TypeError, match="has no length"):
        len(scalar)


def test_writes_of_another_library_into_a_result_are_read_by_the_next_call() -> None:
    sketch = CudaSketch(symbols={"n": (1, 100)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    sketch.elementwise(DOUBLE, "double_it", [x, out])
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    (first,) = program(np.ones(8, np.float32), n=8)
    interface = first.__cuda_array_interface__
    fives = np.full(8, 5, np.float32)
    with driver.scope():
        theirs = driver.create_stream()
        driver.synchronize(interface["stream"])
        driver.copy_to_device(interface["data"][0], fives.ctypes.data, fives.nbytes, theirs)
    assert program(first, n=8)[0].numpy().tolist() == [10] * 8
