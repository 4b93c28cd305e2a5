"""The memory of a device: lent, reused, given back, and never while somebody still uses it."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tensorkiln.errors import CallBoundsError, CallInputError, DeviceError
from tensorkiln.expr import symbol
from tensorkiln.runtime.cuda import Function, OutOfDeviceMemoryError
from tests.runtime.cuda.foreign import WithDlpack, WithInterface
from tests.runtime.cuda.kernels import ADD, DOUBLE, INCREMENT
from tests.runtime.cuda.sketch import CudaSketch
from tests.simt.driver import EmulatedDriver

N = symbol("n")
LEFT, RIGHT = 100, 101


def chain(length: int = 6) -> CudaSketch:
    """`x`, doubled `length` times, every intermediate needed by the next item only."""
    sketch = CudaSketch(symbols={"n": (0, 1 << 20)})
    value = sketch.buffer([N], "input")
    for step in range(length - 1):
        after = sketch.buffer([N], lifetime=(step, step + 1))
        sketch.elementwise(DOUBLE, "double_it", [value, after])
        value = after
    sketch.elementwise(DOUBLE, "double_it", [value, sketch.buffer([N], "output")])
    return sketch


def addition() -> CudaSketch:
    sketch = CudaSketch(symbols={"n": (0, 1000)})
    left, right = sketch.buffer([N], "input"), sketch.buffer([N], "input")
    sketch.elementwise(ADD, "add", [left, right, sketch.buffer([N], "output")])
    return sketch


def held(driver: EmulatedDriver) -> int:
    """Bytes that are allocated now."""
    return sum(allocation.size for allocation in driver.memory.allocations)


def test_a_chain_of_temporaries_takes_the_room_of_two() -> None:
    n = 1 << 12
    planned = chain(20).gpu_program().planned_peak_bytes(n=n)
    assert planned == 4 * n * 4, "two temporaries, the output, and the copy of the input"


def test_the_planned_peak_is_what_a_call_really_allocates_within_a_tenth() -> None:
    sketch = chain()
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    assert program.measured_peak_bytes == 0
    n = 1 << 14
    planned = program.planned_peak_bytes(n=n)
    (result,) = program(np.ones(n, np.float32), n=n)
    assert held(driver) == pytest.approx(planned, rel=0.1)
    assert program.measured_peak_bytes == held(driver)
    assert result.numpy()[0] == 64
    with pytest.raises(CallBoundsError, match="the symbol n is missing"):
        program.planned_peak_bytes()


def test_memory_stays_warm_between_calls() -> None:
    sketch = chain()
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    values = np.ones(5000, np.float32)
    program(values, n=5000)[0].numpy()
    allocated = driver.log.allocated
    for count in (5000, 5000, 5100, 4990):
        program(np.ones(count, np.float32), n=count)[0].numpy()
    assert driver.log.allocated == allocated
    assert driver.log.freed == 0


def test_a_program_that_is_gone_has_given_everything_back() -> None:
    sketch = chain()
    sketch.buffer([2], "constant", content=b"12345678")
    driver = sketch.driver()
    program = sketch.gpu_program(driver).bind({100: np.ones(3, np.float32)})
    (result,) = program(n=3)
    gc.disable()
    try:
        del program
        assert result.numpy().tolist() == [64] * 3, "the result lives by itself"
        del result
        assert held(driver) == 0, "without waiting for the garbage collector"
        assert driver.log.unloaded == len(driver.log.loaded) == 1
    finally:
        gc.enable()


def test_results_of_many_calls_do_not_pile_up() -> None:
    sketch = chain(1)
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    for count in range(1, 400, 7):
        (result,) = program(np.ones(count, np.float32), n=count)
        assert result.numpy().sum() == 2 * count
    assert driver.log.allocated - driver.log.freed <= 64 + 8 + 1


def test_idle_memory_is_freed_for_a_call_that_needs_the_room() -> None:
    sketch = chain()
    driver = sketch.driver(capacity=200_000)
    program = sketch.gpu_program(driver)
    results = []
    for count in (1_000, 9_000, 2_000, 5_000):
        # Not waited for: what is freed for one call is still used by the work of another.
        results.append(program(np.full(count, 3, np.float32), n=count)[0])
        results = [result for result in results if result.size < 9_000]
    for result in results:
        assert_array_equal(result.numpy(), np.full(result.shape, 192, np.float32))
    del results
    with pytest.raises(OutOfDeviceMemoryError) as caught:
        program(np.ones(50_000, np.float32), n=50_000)
    assert isinstance(caught.value, DeviceError)
    assert program(np.ones(5, np.float32), n=5)[0].numpy().tolist() == [64] * 5, "and smaller calls still work"


def test_an_error_on_the_way_ends_what_was_begun_and_gives_the_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    sketch = CudaSketch(symbols={"n": (1, 100)})
    x, doubled = sketch.buffer([N], "input"), sketch.buffer([N])
    sketch.elementwise(DOUBLE, "double_it", [x, doubled])
    sketch.elementwise(INCREMENT, "increment", [doubled, sketch.buffer([N], "output")])
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    values = np.array([3, 1, 2], np.float32)
    (result,) = program(values, n=3)
    stream = result.ready.stream.handle
    assert result.numpy().tolist() == [7, 3, 5]
    allocated = held(driver)
    launch = driver.launch

    def interrupt(function: Function, *arguments: Any) -> None:
        if function.name == "increment":
            assert driver.pending(stream) > 0
            raise KeyboardInterrupt
        launch(function, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(driver, "launch", interrupt)
        interrupted = sketch.gpu_program(driver).on(stream)
        with pytest.raises(KeyboardInterrupt) as caught:
            interrupted(values, n=3)
    assert driver.pending(stream) == 0, "although the traceback keeps all memory of the call"
    del caught
    assert held(driver) <= allocated + 512, "the arena of the second program"
    assert program(values, n=3)[0].numpy().tolist() == [7, 3, 5]


def test_an_array_of_the_host_may_change_as_soon_as_the_call_returns() -> None:
    program = chain().gpu_program()
    values = np.ones(100, np.float32)
    (result,) = program(values, n=100)
    values[:] = 1000
    assert result.numpy().tolist() == [64] * 100


def test_results_of_earlier_calls_are_not_overwritten_by_later_ones() -> None:
    program = chain().gpu_program()
    results = [program(np.full(64, seed, np.float32), n=64)[0] for seed in range(20)]
    assert [result.numpy()[0] for result in results] == [64 * seed for seed in range(20)]


def test_memory_that_another_stream_still_reads_is_not_reused() -> None:
    # One program makes a value on its stream, another reads it on a stream of its own; the value is dropped at once,
    # and the first program makes the next one, for which its memory comes in handy.
    make, use = chain(1), addition()
    driver = make.driver()
    first, second = make.gpu_program(driver), use.gpu_program(driver)
    ones = np.ones(64, np.float32)
    sums = []
    for seed in range(10):
        (value,) = first(np.full(64, seed, np.float32), n=64)
        sums.append(second(value, ones, n=64)[0])
        del value
    assert [total.numpy()[0] for total in sums] == [2 * seed + 1 for seed in range(10)]


def test_memory_that_another_stream_still_reads_is_no_result_of_the_next_call() -> None:
    # As above, but nothing is uploaded, so the memory becomes the next result.
    make, use = chain(1), addition()
    driver = make.driver()
    first, second = make.gpu_program(driver), use.gpu_program(driver)
    makers = [first.bind({LEFT: np.full(64, seed, np.float32)}) for seed in range(6)]
    user = second.bind({RIGHT: np.ones(64, np.float32)})
    sums = []
    for maker in makers:
        (value,) = maker(n=64)
        sums.append(user(value, n=64)[0])
        del value
    assert [total.numpy()[0] for total in sums] == [2 * seed + 1 for seed in range(6)]


def test_a_value_is_waited_for_by_the_first_call_on_another_stream() -> None:
    sketch = addition()
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    with driver.scope():
        other = program.on(driver.create_stream())
    (value,) = program(np.zeros(32, np.float32), np.ones(32, np.float32), n=32)
    assert other(value, value, n=32)[0].numpy()[0] == 2


def test_a_copy_for_another_library_waits_for_its_source_and_keeps_it() -> None:
    sketch = chain(1)
    driver = sketch.driver(dlpack_device=(1, 0))
    program = sketch.gpu_program(driver).bind({LEFT: np.full(64, 3, np.float32)})
    other = sketch.gpu_program(driver).bind({LEFT: np.full(64, 50, np.float32)})
    (result,) = program(n=64)
    copy = np.from_dlpack(result, copy=True)
    del result
    overwritten = other(n=64)
    assert overwritten[0].numpy()[0] == 100
    with driver.scope():
        driver.synchronize_all()
    assert copy.tolist() == [6] * 64


def test_a_copy_that_nobody_keeps_does_not_arrive_in_memory_that_was_lent_again() -> None:
    sketch = chain(1)
    driver = sketch.driver(dlpack_device=(1, 0))
    program = sketch.gpu_program(driver).bind({LEFT: np.full(64, 3, np.float32)})
    other = sketch.gpu_program(driver).bind({LEFT: np.full(64, 50, np.float32)})
    (result,) = program(n=64)
    np.from_dlpack(result, copy=True)
    (later,) = other(n=64)
    assert later.numpy()[0] == 100
    with driver.scope():
        driver.synchronize_all()
    assert later.numpy()[0] == 100


def test_a_value_is_waited_for_across_streams_in_both_directions() -> None:
    sketch = addition()
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    with driver.scope():
        other = program.on(driver.create_stream())
    (value,) = program(np.zeros(32, np.float32), np.ones(32, np.float32), n=32)
    for step in range(12):
        (value,) = (other if step % 2 else program)(value, value, n=32)
    assert value.numpy()[0] == 2**12


def test_a_result_that_was_shown_to_another_library_is_not_reused_while_that_still_writes() -> None:
    sketch = chain(1)
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    sevens = np.full(64, 7, np.float32)
    (result,) = program(sevens, n=64)
    address = result.__cuda_array_interface__["data"][0]
    with driver.scope():
        theirs = driver.create_stream()
        driver.copy_to_device(address, sevens.ctypes.data, sevens.nbytes, theirs)
    del result
    (again,) = program(np.ones(64, np.float32), n=64)
    assert driver.pending(theirs) == 0, "what was put on their stream has happened"
    assert again.numpy().tolist() == [2] * 64


def test_bound_inputs_are_uploaded_once() -> None:
    sketch = addition()
    driver = sketch.driver()
    program = sketch.gpu_program(driver).bind({LEFT: np.full(50, 10, np.float32)})
    values = np.arange(50, dtype=np.float32)
    assert program.planned_peak_bytes(n=50) == 4 * 50 * 2, "the result and the other input"
    program(values, n=50)
    allocated = driver.log.allocated
    for _ in range(3):
        assert_array_equal(program(values, n=50)[0].numpy(), values + 10)
    assert driver.log.allocated <= allocated + 1
    everything = program.bind({RIGHT: values})
    assert_array_equal(everything(n=50)[0].numpy(), values + 10)


@pytest.mark.parametrize("offer", [WithDlpack, WithInterface])
def test_a_bound_array_of_another_library_is_kept_and_not_copied(offer: type[WithDlpack]) -> None:
    sketch = addition()
    driver = sketch.driver(watched=True)
    values = np.arange(50, dtype=np.float32)
    with driver.scope():
        stream = driver.create_stream()
    weights = offer(driver, np.full(50, 5, np.float32), after=stream)
    allocated = driver.log.allocated
    free = sketch.gpu_program(driver)
    program = free.bind({RIGHT: weights})
    assert driver.log.allocated == allocated
    del weights
    results = [program(values, n=50)[0] for _ in range(3)]
    del program
    for result in results:
        assert_array_equal(result.numpy(), values + 5)
    assert len(driver.memory.allocations) < driver.log.allocated, "the array is freed"


def test_a_bound_array_that_another_library_still_writes_is_waited_for() -> None:
    sketch = addition()
    driver = sketch.driver()
    values = np.arange(50, dtype=np.float32)
    with driver.scope():
        theirs, ours = driver.create_stream(), driver.create_stream()
    weights = WithDlpack(driver, np.full(50, 5, np.float32), after=theirs)
    program = sketch.gpu_program(driver).bind({RIGHT: weights}).bind({LEFT: values}).on(ours)
    assert_array_equal(program(n=50)[0].numpy(), values + 5)


def test_a_bound_result_is_kept_alive_and_reused_by_nobody() -> None:
    sketch, maker = addition(), chain(1)
    driver = sketch.driver()
    make, free = maker.gpu_program(driver), sketch.gpu_program(driver)
    (weights,) = make(np.full(50, 2, np.float32), n=50)
    program = free.bind({LEFT: weights})
    del weights
    values = np.arange(50, dtype=np.float32)
    (result,) = program(values, n=50)
    del program
    clobbered = make(np.full(50, 99, np.float32), n=50)
    assert_array_equal(result.numpy(), values + 4)
    assert clobbered[0].numpy()[0] == 198


def test_a_bound_result_that_is_still_computed_is_waited_for() -> None:
    sketch, maker = addition(), chain(1)
    driver = sketch.driver()
    make = maker.gpu_program(driver).bind({LEFT: np.full(50, 2, np.float32)})
    free = sketch.gpu_program(driver).bind({RIGHT: np.ones(50, np.float32)})
    (weights,) = make(n=50)
    assert free.bind({LEFT: weights})(n=50)[0].numpy().tolist() == [5] * 50


def test_a_bound_array_that_is_not_aligned_enough_is_copied() -> None:
    sketch = CudaSketch(symbols={"n": (0, 1000)})
    left, right = sketch.buffer([N], "input"), sketch.buffer([N], "input")
    sketch.elementwise(ADD, "add", [left, right, sketch.buffer([N], "output")], alignments=(16, 16, 16))
    driver = sketch.driver()
    values = np.arange(50, dtype=np.float32)
    misaligned = WithDlpack(driver, values, offset=4)
    program = sketch.gpu_program(driver).bind({LEFT: misaligned})
    assert_array_equal(program(values, n=50)[0].numpy(), values * 2)


def test_a_bound_array_may_say_its_shape_by_its_protocol_only() -> None:
    sketch = addition()
    driver = sketch.driver()
    values = np.arange(50, dtype=np.float32)
    given = WithInterface(driver, values)
    described = SimpleNamespace(__cuda_array_interface__=given.__cuda_array_interface__)
    program = sketch.gpu_program(driver).bind({RIGHT: described})
    assert_array_equal(program(values, n=50)[0].numpy(), values * 2)
    with pytest.raises(CallInputError, match=r"has the shape \(50,\), but the program takes \(49,\)"):
        program(values[:49], n=49)


def test_a_bound_array_must_fit() -> None:
    program = addition().gpu_program()
    with pytest.raises(CallInputError, match="var 7 is not a free input; the free inputs are 100, 101"):
        program.bind({7: np.ones(3, np.float32)})
    with pytest.raises(CallInputError, match=r"input 1 \(var 101\) has the dtype float64"):
        program.bind({RIGHT: np.ones(3)})
    with pytest.raises(CallInputError, match=r"has the shape \(3, 1\), but the program takes \(None,\)"):
        program.bind({RIGHT: np.ones((3, 1), np.float32)})
    bound = program.bind({LEFT: np.ones(3, np.float32)})
    with pytest.raises(CallInputError, match="var 100 is not a free input; the free inputs are 101"):
        bound.bind({LEFT: np.ones(3, np.float32)})
    with pytest.raises(CallInputError, match=r"input 0 \(var 100\) has the shape \(3,\), but the program takes \(4,\)"):
        bound(np.ones(4, np.float32), n=4)


def test_constants_are_on_the_device_once_for_all_calls() -> None:
    sketch = CudaSketch(symbols={"n": (4, 4)})
    table = np.array([10, 20, 30, 40], np.float32)
    x, constant = sketch.buffer([N], "input"), sketch.buffer([4], "constant", content=table.tobytes())
    between = sketch.buffer([N])
    sketch.elementwise(ADD, "add", [x, constant, between])
    sketch.elementwise(INCREMENT, "increment", [between, sketch.buffer([N], "output")])
    driver = sketch.driver()
    program = sketch.gpu_program(driver)
    for _ in range(4):
        assert_array_equal(program(np.ones(4, np.float32), n=4)[0].numpy(), table + 2)
    assert driver.log.allocated == 4, "the constant, an arena, an input, a result"
