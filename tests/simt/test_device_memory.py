"""Device memory: what is copied comes back, and what nobody wrote looks like it."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from . import DeviceMemory, OutOfBounds


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16", "int8", "uint64", "bool"])
def test_an_array_comes_back_as_it_was(dtype: str) -> None:
    memory = DeviceMemory()
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    array = np.arange(24).reshape(2, 3, 4).astype(kind).transpose(2, 0, 1)
    buffer = memory.upload(array)
    assert buffer.shape == (4, 2, 3)
    np.testing.assert_array_equal(buffer.numpy(), array)
    assert memory.read(buffer.address, buffer.nbytes).tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_unwritten_device_memory_is_nan(dtype: str) -> None:
    memory = DeviceMemory()
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    for _ in range(100):
        buffer = memory.fresh((5,), kind)
        assert np.isnan(buffer.numpy().astype(np.float64)).all()
        assert buffer.unwritten().all()


def test_writing_through_an_address_shows_in_the_array() -> None:
    memory = DeviceMemory()
    buffer = memory.fresh((4,), np.int32)
    memory.write(buffer.address + 4, np.array([7, 8], np.int32))
    memory.write(buffer.address + 12, (9).to_bytes(4, "little"))
    assert buffer.unwritten().tolist() == [True, False, False, False]
    assert buffer.numpy()[1:].tolist() == [7, 8, 9]


def test_arrays_without_elements_have_addresses() -> None:
    memory = DeviceMemory()
    empty, scalar = memory.upload(np.zeros((0, 3), np.float32)), memory.upload(np.array(5, np.int64))
    assert empty.numpy().shape == (0, 3)
    assert scalar.numpy() == 5
    assert empty.address != scalar.address
    memory.free(empty.address)
    memory.free(scalar.address)
    assert memory.allocations == ()


@pytest.mark.parametrize("action", [lambda m: m.free(1), lambda m: m.read(1, 1), lambda m: m.write(1, b"x")])
def test_addresses_that_are_not_its_own_are_refused(action: Callable[[DeviceMemory], object]) -> None:
    memory = DeviceMemory()
    memory.allocate(16)
    with pytest.raises(OutOfBounds):
        action(memory)


def test_a_copy_over_the_end_of_an_allocation_is_refused() -> None:
    memory = DeviceMemory()
    address = memory.allocate(16)
    with pytest.raises(OutOfBounds, match=r"8 bytes at 0x\w+ are not inside one allocation"):
        memory.write(address + 12, bytes(8))


@pytest.mark.parametrize(("offset", "place"), [(-1, "before"), (-4096, "before"), (16, "after"), (16 + 4095, "after")])
def test_a_damaged_border_is_found_at_each_end(offset: int, place: str) -> None:
    memory = DeviceMemory()
    address = memory.allocate(16)
    (allocation,) = memory.allocations
    memory.check()
    allocation.storage[allocation.offset + offset] ^= 0x10
    distance = -offset if offset < 0 else offset - 15
    message = rf"1 bytes {place} the allocation of 16 bytes at {address:#x} were written, the nearest {distance} byte"
    with pytest.raises(OutOfBounds, match=message):
        memory.check()
    with pytest.raises(OutOfBounds, match=message):
        memory.free(address)
