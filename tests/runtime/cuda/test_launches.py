"""What is checked before a kernel is launched, and what a launch is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tensorkiln.errors import CallBoundsError, DeviceError
from tensorkiln.expr import Dim, symbol
from tensorkiln.program import Program
from tests.runtime.cuda.kernels import ADD, DOUBLE, reversed_blocks
from tests.runtime.cuda.sketch import CudaSketch
from tests.simt.driver import HOPPER, EmulatedDriver

N = symbol("n")
DYNAMIC = reversed_blocks("reverse", "[0 x float]")
STATIC = reversed_blocks("reverse", "[64 x float]")


def one_kernel(
    grid: tuple[Dim, Dim, Dim] = (1, 1, 1), block: tuple[Dim, Dim, Dim] = (32, 1, 1), **options: Any
) -> tuple[Program, EmulatedDriver]:
    """A program of one kernel that is launched like this; `options` are those of the device."""
    sketch = CudaSketch(symbols={"n": (0, 1 << 40)})
    x, out = sketch.buffer([4], "input"), sketch.buffer([4], "output")
    bounded = DOUBLE.replace("icmp slt i64 %i, %n", "icmp slt i64 %i, 4")
    sketch.kernel(bounded, "double_it", [x, out], grid=grid, block=block, var_names=("n",))
    driver = sketch.driver(**options)
    return sketch.gpu_program(driver), driver


@pytest.mark.parametrize(
    ("grid", "block", "limit", "value", "maximum"),
    [
        ((N, 1, 1), (32, 1, 1), "grid in x", 2**31, 2**31 - 1),
        ((1, N, 1), (32, 1, 1), "grid in y", 65_536, 65_535),
        ((1, 1, N), (32, 1, 1), "grid in z", 65_536, 65_535),
        ((1, 1, 1), (N, 1, 1), "block in x", 1025, 1024),
        ((1, 1, 1), (1, 1, N), "block in z", 65, 64),
        ((1, 1, 1), (64, 8, N), "threads per block", 2048, 1024),
    ],
)
def test_a_launch_beyond_the_limits_of_the_device_is_refused_with_kernel_limit_and_value(
    grid: tuple[Dim, Dim, Dim], block: tuple[Dim, Dim, Dim], limit: str, value: int, maximum: int
) -> None:
    program, driver = one_kernel(grid, block)
    n = 4 if limit == "threads per block" else value
    values = np.arange(4, dtype=np.float32)
    with pytest.raises(CallBoundsError, match=f"kernel double_it has {value} as its {limit}") as caught:
        program(values, n=n)
    assert caught.value.details == {"kernel": "double_it", "limit": limit, "value": value, "maximum": maximum}
    assert driver.log.launches == []
    program(values, n=1)
    assert len(driver.log.launches) == 1


def test_the_threads_of_a_block_are_bounded_by_what_the_kernel_was_compiled_for() -> None:
    sketch = CudaSketch(symbols={"n": (0, 1000)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    bounded = DOUBLE.replace("i64 %n) {", 'i64 %n) "nvvm.maxntid"="64" {')
    sketch.kernel(bounded, "double_it", [x, out], block=(N, 1, 1), var_names=("n",))
    program = sketch.gpu_program()
    program(np.ones(64, np.float32), n=64)
    with pytest.raises(CallBoundsError, match=r"has 65 as its threads per block, and the GPU .* allows 64"):
        program(np.ones(65, np.float32), n=65)


@pytest.mark.parametrize("size", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_a_grid_with_an_empty_dimension_launches_nothing(size: tuple[int, int, int]) -> None:
    program, driver = one_kernel(tuple(dim * N for dim in size))  # type: ignore[arg-type]
    program(np.ones(4, np.float32), n=3)
    assert driver.log.launches == []
    assert program.profile(np.ones(4, np.float32), n=3) == ()


def test_a_negative_grid_or_an_empty_block_breaks_the_launch_rules() -> None:
    for grid, block in (((N - 5, 1, 1), (32, 1, 1)), ((1, 1, 1), (N - 2, 1, 1))):
        program, driver = one_kernel(grid, block)
        with pytest.raises(CallBoundsError, match="launch dimension 0 evaluated to non-positive value"):
            program(np.ones(4, np.float32), n=2)
        assert driver.log.launches == []


def test_static_shared_memory_and_barriers_work() -> None:
    sketch = CudaSketch()
    x, out = sketch.buffer([128], "input"), sketch.buffer([128], "output")
    sketch.kernel(STATIC, "reverse", [x, out], grid=(2, 1, 1), block=(64, 1, 1), static_shared_bytes=256)
    values = np.arange(128, dtype=np.float32)
    (result,) = sketch.gpu_program(sketch.driver(watched=True))(values)
    assert_array_equal(result.numpy(), values.reshape(2, 64)[:, ::-1].ravel())


def dynamic(size: Dim, **options: Any) -> tuple[Program, EmulatedDriver]:
    """Blocks of `n` elements reversed by way of `size` bytes of dynamic shared memory."""
    sketch = CudaSketch(symbols={"n": (0, 1 << 20)})
    x, out = sketch.buffer([2 * N], "input"), sketch.buffer([2 * N], "output")
    sketch.kernel(DYNAMIC, "reverse", [x, out], grid=(2, 1, 1), block=(N, 1, 1), dynamic_shared_bytes=size)
    driver = sketch.driver(watched=True, **options)
    return sketch.gpu_program(driver), driver


def test_the_dynamic_shared_memory_of_a_launch_is_evaluated() -> None:
    program, driver = dynamic(4 * N)
    for n in (1, 33, 64):
        values = np.arange(2 * n, dtype=np.float32)
        assert_array_equal(program(values, n=n)[0].numpy(), values.reshape(2, n)[:, ::-1].ravel())
    assert [shared for *_, shared in driver.log.launches] == [4, 132, 256]
    assert driver.log.allowed == {}


def test_more_than_48_kib_of_shared_memory_is_asked_for() -> None:
    program, driver = dynamic(1024 * N)
    values = np.arange(128, dtype=np.float32)
    assert_array_equal(program(values, n=64)[0].numpy(), values.reshape(2, 64)[:, ::-1].ravel())
    assert driver.log.allowed == {"reverse": HOPPER.max_shared_bytes}
    with pytest.raises(CallBoundsError, match="has 262144 as its bytes of shared memory per block"):
        program(np.ones(512, np.float32), n=256)


def test_shared_memory_that_a_smaller_device_lacks_is_refused() -> None:
    program, _ = dynamic(1024 * N, properties=replace(HOPPER, max_shared_bytes=48 << 10))
    program(np.ones(64, np.float32), n=32)
    with pytest.raises(CallBoundsError, match=r"has 65536 as its bytes of shared memory per block, .* allows 49152"):
        program(np.ones(128, np.float32), n=64)


def test_a_negative_amount_of_shared_memory_is_refused() -> None:
    program, _ = dynamic(4 * N - 100)
    with pytest.raises(CallBoundsError, match="kernel reverse has -60 bytes of dynamic shared memory"):
        program(np.ones(20, np.float32), n=10)


def windows(offset: int, alignments: tuple[int, ...], **fields: Any) -> CudaSketch:
    """A kernel from one window of a temporary to another, `offset` bytes further on."""
    sketch = CudaSketch(symbols={"n": (1, 1000)})
    sketch.bind(sketch.buffer([2 * N], alias_group=1), sketch.outputs)
    low, high = sketch.buffer([N], alias_group=1), sketch.buffer([N], alias_group=1, offset=offset)
    sketch.elementwise(DOUBLE, "double_it", [low, high], alignments=alignments, **fields)
    return sketch


def test_an_address_that_breaks_the_alignment_of_a_kernel_is_refused() -> None:
    windows(32, (16, 16)).gpu_program()(n=8)
    with pytest.raises(DeviceError, match="needs buffer 2 at a multiple of 16 bytes, and it is at byte 40"):
        windows(40, (16, 16)).gpu_program()(n=8)
    windows(40, (16, 8)).gpu_program()(n=8)
    with pytest.raises(DeviceError, match="needs buffer 2 at a multiple of 4 bytes, and it is at byte 34"):
        windows(34, ()).gpu_program()(n=8)


def test_arguments_that_overlap_one_that_is_written_are_refused() -> None:
    windows(32, ()).gpu_program()(n=8)
    with pytest.raises(DeviceError, match="must write buffer 2 apart from its other arguments, and buffer 1 shares"):
        windows(32, ()).gpu_program()(n=9)
    windows(32, (), no_overlap=False).gpu_program()(n=9)


def test_arguments_that_are_only_read_may_be_the_same() -> None:
    sketch = CudaSketch(symbols={"n": (1, 1000)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    sketch.elementwise(ADD, "add", [x, x, out])
    assert sketch.gpu_program()(np.ones(3, np.float32), n=3)[0].numpy().tolist() == [2, 2, 2]


def test_a_kernel_may_update_its_argument_in_place() -> None:
    sketch = CudaSketch(symbols={"n": (1, 1000)})
    x = sketch.buffer([N], "input")
    before, after = sketch.buffer([N], alias_group=1), sketch.buffer([N], "output", alias_group=1)
    sketch.elementwise(DOUBLE, "double_it", [x, before])
    sketch.elementwise(DOUBLE, "double_it", [before, after], no_overlap=False)
    assert sketch.gpu_program()(np.ones(3, np.float32), n=3)[0].numpy().tolist() == [4, 4, 4]


def test_a_wrong_number_of_arguments_is_an_error_of_the_launch() -> None:
    sketch = CudaSketch(symbols={"n": (1, 1000)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    sketch.kernel(DOUBLE, "double_it", [x, out], var_names=())
    with pytest.raises(DeviceError, match="takes 3 arguments, got 2"):
        sketch.gpu_program()(np.ones(3, np.float32), n=3)
