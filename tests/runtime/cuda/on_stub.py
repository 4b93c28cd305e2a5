"""What `test_bindings.py` runs in a process whose libcuda is the stub."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tensorkiln.errors import DeviceError
from tensorkiln.expr import symbol
from tensorkiln.program import Program
from tensorkiln.runtime.cuda import Arguments, DeviceProperties, OutOfDeviceMemoryError, open_driver
from tests.runtime.cuda.kernels import DOUBLE
from tests.runtime.cuda.sketch import CudaSketch

N = symbol("n")
VALUES = np.arange(100, dtype=np.float32)


def doubling(**fields: Any) -> Program:
    sketch = CudaSketch(symbols={"n": (0, 1000)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    sketch.elementwise(DOUBLE, "double_it", [x, out], **fields)
    return Program(sketch.compiled(), sketch.artifacts.__getitem__)


def misnamed() -> Program:
    sketch = CudaSketch(symbols={"n": (0, 1000)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    sketch.elementwise(DOUBLE, "double_it", [x, out])
    sketch.kernels[0] = sketch.kernels[0].model_copy(update={"entry": "missing"})
    return Program(sketch.compiled(), sketch.artifacts.__getitem__)


def check_a_program() -> None:
    """Copies, launch, events, streams: the whole way of a call."""
    program = doubling()
    results = [program(VALUES + seed, n=100)[0] for seed in range(5)]
    for seed, result in enumerate(results):
        assert_array_equal(np.asarray(result), 2 * (VALUES + seed))
    (again,) = program(results[0], n=100)
    assert_array_equal(again.numpy(), 4 * VALUES)
    (item,) = program.profile(VALUES, n=100)
    assert item.ns == 500_000


def check_memory_goes_back() -> None:
    """More calls than the stub has blocks, on more than one stream."""
    for seed in range(300):
        program = doubling().bind({100: VALUES})
        assert program(n=100)[0].numpy()[1] == 2, seed
        del program


def check_shared_memory() -> None:
    """More of it than a kernel has without asking."""
    assert doubling(dynamic_shared_bytes=60_000)(VALUES, n=100)[0].numpy()[1] == 2


def check_the_device() -> None:
    assert open_driver().properties == DeviceProperties(
        name="stub 0",
        capability=(9, 0),
        max_grid=(2**31 - 1, 65_535, 65_535),
        max_block=(1024, 1024, 64),
        max_threads=1024,
        max_shared_bytes=232_448,
        multiprocessors=132,
        clock_khz=1_980_000,
        memory_khz=2_619_000,
        memory_bits=5120,
    )
    assert open_driver() is open_driver(0)
    assert (open_driver().ordinal, open_driver().dlpack_device) == (0, (2, 0))
    for ordinal in (1, -1):
        with pytest.raises(DeviceError, match=f"has 1 CUDA devices and none has the number {ordinal}"):
            open_driver(ordinal)


def check_no_device() -> None:
    with pytest.raises(DeviceError, match="cuInit: CUDA_ERROR_NO_DEVICE: said by the stub") as caught:
        open_driver()
    assert caught.value.details == {"cuda_error": "CUDA_ERROR_NO_DEVICE"}


def check_errors() -> None:
    """What the driver says reaches the user."""
    driver = open_driver()
    with driver.scope():
        with pytest.raises(DeviceError, match=r"loading the program's code \(ptxas fatal: no kernel in 7 characters"):
            driver.load_module(b"garbage")
        with pytest.raises(OutOfDeviceMemoryError, match="the allocation of 2147483648 bytes: CUDA_ERROR_OUT_OF"):
            driver.allocate(1 << 31)
        with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_VALUE"):
            driver.free(12345)
        assert driver.owner_of(12345) is None
        address = driver.allocate(10)
        assert (address % 256, driver.owner_of(address + 9)) == (0, 0)
        driver.free(address)
    with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_CONTEXT"):
        driver.allocate(10)
    with pytest.raises(DeviceError, match="has no kernel missing"):
        misnamed()(VALUES, n=100)


def check_assembled_code() -> None:
    """A cubin is loaded as it is, and its kernel launched with a value below zero."""
    driver = open_driver()
    with driver.scope(), driver.scope():
        module = driver.load_module(b"\x7fELF...")
        function = driver.function(module, "double_it")
        assert (function.max_threads, function.static_shared_bytes) == (512, 1024)
        stream, block = driver.create_stream(), driver.allocate(256)
        driver.launch(function, (1, 1, 1), (32, 1, 1), 0, Arguments([block, block, -5]), stream)
        driver.synchronize_all()
        driver.free(block)
        driver.destroy_stream(stream)
        driver.unload_module(module)
        with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_HANDLE"):
            driver.synchronize(stream)


def check_arguments() -> None:
    """Each pointer points at its value."""
    arguments = Arguments([1, -1, 1 << 40])
    pointers = (ctypes.c_uint64 * 3).from_address(arguments.address)
    assert [ctypes.c_int64.from_address(pointer).value for pointer in pointers] == [1, -1, 1 << 40]
    arguments.values[1] = 7
    assert ctypes.c_int64.from_address(pointers[1]).value == 7
    assert len(Arguments([]).values) == 0


def check_a_forked_child() -> None:
    program = doubling()
    program(VALUES, n=100)
    child = os.fork()
    if not child:
        with pytest.raises(DeviceError, match="cannot be used in a forked process"):
            program(VALUES, n=100)
        del program
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
