"""Inputs that are on the device already."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tensorkiln.dtypes import DType
from tensorkiln.errors import CallInputError
from tensorkiln.expr import symbol
from tensorkiln.program import Program
from tensorkiln.runtime.cuda import dlpack_types as types
from tests.runtime.cuda.foreign import Foreign, OldDlpack, WithDlpack, WithInterface
from tests.runtime.cuda.kernels import DOUBLE
from tests.runtime.cuda.sketch import CudaSketch
from tests.simt.driver import EmulatedDriver

N = symbol("n")
VALUES = np.arange(40, dtype=np.float32)
OFFERS = [WithDlpack, OldDlpack, WithInterface]


def doubling(alignment: int = 4, **options: object) -> tuple[Program, EmulatedDriver]:
    sketch = CudaSketch(symbols={"n": (0, 1000)})
    x, out = sketch.buffer([N], "input"), sketch.buffer([N], "output")
    code = DOUBLE.replace("(ptr %p0", f"(ptr align {alignment} %p0")
    sketch.elementwise(code, "double_it", [x, out], alignments=(alignment, 4))
    driver = sketch.driver(watched=True, **options)
    return sketch.gpu_program(driver), driver


@pytest.mark.parametrize("offer", OFFERS)
def test_an_array_of_another_library_is_used_where_it_lies(offer: type[Foreign]) -> None:
    program, driver = doubling()
    given = offer(driver, VALUES)
    before = driver.log.allocated
    (result,) = program(given, n=40)
    assert_array_equal(result.numpy(), VALUES * 2)
    assert driver.log.allocated - before == 2, "an arena and a result, and no copy of the input"
    assert_array_equal(given.read(), VALUES)


@pytest.mark.parametrize("offer", OFFERS)
def test_the_program_waits_for_the_stream_that_still_writes_the_array(offer: type[Foreign]) -> None:
    program, driver = doubling()
    with driver.scope():
        stream = driver.create_stream()
    (result,) = program(offer(driver, VALUES, after=stream), n=40)
    assert_array_equal(result.numpy(), VALUES * 2)


@pytest.mark.parametrize("offer", OFFERS)
def test_the_array_may_be_freed_as_soon_as_the_call_returns(offer: type[Foreign]) -> None:
    program, driver = doubling()
    given = offer(driver, VALUES)
    (result,) = program(given, n=40)
    freed = driver.log.freed
    del given
    gc.collect()
    assert driver.log.freed == freed + 1, "nothing holds the array any more"
    assert_array_equal(result.numpy(), VALUES * 2)


def test_a_dlpack_producer_is_told_the_stream_of_the_program() -> None:
    program, driver = doubling()
    given = WithDlpack(driver, VALUES)
    (result,) = program(given, n=40)
    assert given.asked == [result.ready.stream.handle]
    program.on(0)(given, n=40)
    assert given.asked[-1] == 1, "the default stream, for which DLPack forbids 0"


@pytest.mark.parametrize("offer", OFFERS)
def test_an_array_that_is_not_aligned_enough_is_copied_on_the_device(offer: type[Foreign]) -> None:
    program, driver = doubling(alignment=16)
    for offset in (0, 4, 8, 16):
        (result,) = program(offer(driver, VALUES, offset=offset), n=40)
        assert_array_equal(result.numpy(), VALUES * 2)


@pytest.mark.parametrize("offer", OFFERS)
def test_an_array_that_is_not_row_major_is_refused(offer: type[Foreign]) -> None:
    sketch = CudaSketch()
    sketch.bind(sketch.buffer([2, 3], "input"), sketch.outputs)
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    with pytest.raises(CallInputError, match=r"has the strides \(.*\); make it contiguous first"):
        program(offer(driver, VALUES[:6], shape=(2, 3), strides=(1, 2)))
    (result,) = program(offer(driver, VALUES[:6], shape=(2, 3), strides=(3, 1)))
    assert_array_equal(result.numpy(), VALUES[:6].reshape(2, 3))


@pytest.mark.parametrize("offer", OFFERS)
def test_strides_of_axes_with_one_element_do_not_matter(offer: type[Foreign]) -> None:
    sketch = CudaSketch()
    sketch.bind(sketch.buffer([1, 3, 1], "input"), sketch.outputs)
    driver = sketch.driver()
    given = offer(driver, VALUES[:3], shape=(1, 3, 1), strides=(77, 1, 99))
    assert sketch.gpu_program(driver)(given)[0].numpy().ravel().tolist() == [0, 1, 2]


@pytest.mark.parametrize("offer", OFFERS)
def test_dtype_and_shape_of_an_array_on_the_device_are_checked(offer: type[Foreign]) -> None:
    program, driver = doubling()
    with pytest.raises(CallInputError, match=r"input 0 \(var 100\) has the dtype int32, but the program takes float32"):
        program(offer(driver, VALUES.astype(np.int32)), n=40)
    with pytest.raises(CallInputError, match=r"has the shape \(40,\), but the program takes \(39,\)"):
        program(offer(driver, VALUES), n=39)


def test_an_array_on_another_device_is_refused() -> None:
    program, driver = doubling()
    other = EmulatedDriver(driver.ir, ordinal=1)
    message = "is on CUDA device 1, the program runs on 0"
    with pytest.raises(CallInputError, match=message):
        program(WithDlpack(other, VALUES), n=40)
    with pytest.raises(CallInputError, match="its address is not in the memory of a GPU"):
        program(WithInterface(other, VALUES), n=40)
    sketch = CudaSketch(symbols={"n": (0, 1000)})
    sketch.bind(sketch.buffer([N], "input"), sketch.outputs)
    (elsewhere,) = sketch.gpu_program(other)(VALUES, n=40)
    with pytest.raises(CallInputError, match=message):
        program(elsewhere, n=40)
    (twin,) = sketch.gpu_program(sketch.driver())(VALUES, n=40)
    with pytest.raises(CallInputError, match="in the memory of another driver"):
        program(twin, n=40)


def test_an_interface_on_another_device_that_this_one_can_tell_is_refused() -> None:
    program, driver = doubling()
    given = WithInterface(driver, VALUES)
    program(given, n=40)
    driver.ordinal = 1
    try:
        sketch = CudaSketch(symbols={"n": (0, 1000)})
        sketch.bind(sketch.buffer([N], "input"), sketch.outputs)

        class Pretends(EmulatedDriver):
            def owner_of(self, address: int) -> int | None:
                return 3

        other = Pretends({})
        with pytest.raises(CallInputError, match="is on CUDA device 3, the program runs on 0"):
            sketch.gpu_program(other)(given, n=40)
    finally:
        driver.ordinal = 0


def test_memory_that_device_and_host_share_is_used_where_it_lies() -> None:
    program, driver = doubling()
    given = WithDlpack(driver, VALUES)
    given.device = (types.CUDA_MANAGED, 0)
    assert_array_equal(program(given, n=40)[0].numpy(), VALUES * 2)


def test_half_precision_comes_in_by_dlpack() -> None:
    sketch = CudaSketch()
    narrow = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz]
    kinds = [ml_dtypes.bfloat16, np.float16, np.bool_, np.int8, np.uint64, *narrow]
    for kind in kinds:
        sketch.bind(sketch.buffer([3], "input", DType.from_numpy(np.dtype(kind))), sketch.outputs)
    driver = sketch.driver()
    arrays = [np.array([1, 0, 1]).astype(kind) for kind in kinds]
    results = sketch.gpu_program(driver)(*(WithDlpack(driver, array) for array in arrays))
    for result, array in zip(results, arrays, strict=True):
        assert_array_equal(result.numpy(), array)


def test_an_element_type_that_numpy_lacks_is_refused() -> None:
    program, driver = doubling()

    class Strange(WithDlpack):
        def element(self) -> types.ElementType:
            return types.ElementType(*strange)

    for strange in ((types.FLOAT, 32, 4), (9, 8, 1), (types.FLOAT, 128, 1), (types.INT, 4, 1)):
        with pytest.raises(CallInputError, match=f"the DLPack type {strange[0]} of {strange[1]} bits"):
            program(Strange(driver, VALUES), n=40)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mask": object()}, "is a masked array"),
        ({"stream": 0}, "the stream 0, which __cuda_array_interface__ forbids"),
        ({"data": None}, "not well-formed"),
        ({"typestr": "no type"}, "not well-formed"),
        ({"shape": 5}, "not well-formed"),
    ],
)
def test_an_interface_that_breaks_its_protocol_is_refused(changes: dict[str, object], message: str) -> None:
    program, driver = doubling()
    given = WithInterface(driver, VALUES)
    broken = SimpleNamespace(__cuda_array_interface__=given.__cuda_array_interface__ | changes)
    with pytest.raises(CallInputError, match=message):
        program(broken, n=40)


def test_an_empty_array_needs_no_memory() -> None:
    program, driver = doubling()

    nothing = {"shape": (0,), "typestr": "<f4", "data": (0, False), "version": 3}
    assert program(SimpleNamespace(__cuda_array_interface__=nothing), n=0)[0].numpy().shape == (0,)
    assert program(WithDlpack(driver, VALUES[:0]), n=0)[0].numpy().shape == (0,)


def test_objects_other_than_capsules_are_refused() -> None:
    program, driver = doubling()

    class NoCapsule(WithDlpack):
        def __dlpack__(self, **options: object) -> object:
            return object()

    with pytest.raises(BufferError, match="not a capsule of a tensor"):
        program(NoCapsule(driver, VALUES), n=40)
