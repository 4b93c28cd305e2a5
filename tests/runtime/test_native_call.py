"""Short calls in machine code do what calls in Python do, and leave the rest to those."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, cast, softmax
from tensorkiln.dtypes import DType
from tensorkiln.errors import CallBoundsError, CallInputError, DeviceError
from tensorkiln.program import Program
from tensorkiln.runtime import executor, native_call, short_calls
from tensorkiln.runtime.blocks import LEAST_LENT
from tensorkiln.runtime.call_sizes import MOST_TEMPORARIES, CallSizes
from tensorkiln.runtime.memory import ALIGNMENT, address_of
from tests.compiled import compiled, program
from tests.runtime.test_arena_memory import chain

Array = np.ndarray[Any, Any]
Function = Callable[[Builder], tuple[Tensor, ...]]


@pytest.fixture(autouse=True)
def only_what_a_test_makes() -> None:
    """That is what is collected: to look through all that thousands of tests have left takes half a second."""
    gc.freeze()


def made(function: Function) -> Program:
    b = Builder("short")
    b.output(*function(b))
    return program(compiled(b.graph()))


def twice(b: Builder) -> tuple[Tensor, ...]:
    x = b.input("float32", (4, 5))
    return (x + x,)


def several(b: Builder) -> tuple[Tensor, ...]:
    n = b.symbol("n", 0, 100)
    x, y = b.input("float32", (n, 6)), b.input("int32", ())
    return softmax(x), (x @ x.transpose()).sum(), y * 2, cast(x, "bfloat16")


@contextmanager
def natively() -> Generator[list[bool]]:
    """Says of each call that is tried in machine code whether it ran there, of programs that were not called before."""
    ran: list[bool] = []

    def counted(sizes: CallSizes) -> native_call.NativeCalls | None:
        made = native_call.native_calls(sizes)

        def counting(call: native_call.NativeCall, *given: Any) -> tuple[Array, ...] | None:
            results = call(*given)
            ran.append(results is not None)
            return results

        if made is None:
            return None
        return replace(made, call=partial(counting, made.call), call_into=partial(counting, made.call_into))

    with mock.patch.object(short_calls, "native_calls", counted):
        yield ran


def x_of(rows: int = 4, columns: int = 5) -> Array:
    return np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)


def test_every_call_but_the_first_is_in_machine_code() -> None:
    double, x = made(twice), x_of()
    with natively() as ran:
        for _ in range(4):
            (result,) = double(x)
            np.testing.assert_array_equal(result, x + x)
    assert ran == [True, True, True]


def test_results_are_those_of_a_call_in_python() -> None:
    native, slow = made(several), made(several)
    y = np.array(21, np.int32)
    with natively() as ran, mock.patch.object(short_calls, "MAX_PLANS", 3):
        for n in (100, 0, 1, 7, 100, 7, 64, 63, 0):
            x = x_of(n, 6)
            found = native(x, y, n=n)
            with mock.patch.object(short_calls, "native_calls", return_value=None):
                wanted = slow(x, y, n=n)
            for one, other in zip(found, wanted, strict=True):
                assert (one.dtype, one.shape, one.strides) == (other.dtype, other.shape, other.strides)
                assert one.tobytes() == other.tobytes()
                assert one.flags.carray
                assert address_of(one) % ALIGNMENT == 0
    assert ran == [True] * 8


def test_results_have_memory_of_their_own() -> None:
    double, x = made(twice), x_of()
    results = [double(x)[0] for _ in range(50)]
    results[7][:] = 3
    assert all(np.array_equal(result, x + x) for number, result in enumerate(results) if number != 7)
    assert not any(np.shares_memory(result, x) for result in results)


def test_nothing_is_kept_of_a_call() -> None:
    double, x = made(twice), x_of()
    for _ in range(3):
        double(x)
    held = (x, x.dtype, np.dtype(np.uint8), None)
    before = [sys.getrefcount(each) for each in held]
    for _ in range(1000):
        double(x)
    assert [abs(sys.getrefcount(each) - count) < 50 for each, count in zip(held, before, strict=True)] == [True] * 4


class Special(np.ndarray[Any, Any]):
    """An array that is no plain one."""


def test_arrays_that_are_laid_out_otherwise_are_taken_as_in_python() -> None:
    double, x = made(twice), x_of()
    unaligned = np.frombuffer(b"." + x.tobytes(), np.float32, offset=1).reshape(x.shape)
    read_only = x.copy()
    read_only.flags.writeable = False
    others = (x.copy(order="F"), np.repeat(x, 2, 1)[:, ::2], x.view(Special), unaligned, x[::-1][::-1], read_only)
    with natively() as ran:
        double(x)
        for other in others:
            np.testing.assert_array_equal(double(other)[0], x + x)
    assert ran == [False, False, False, False, True, True]


@pytest.mark.parametrize(
    "given",
    [
        (),
        (x_of(), x_of()),
        (x_of().astype(np.float64),),
        (x_of().astype(">f4"),),
        (x_of(5, 4),),
        (x_of(4, 5)[0],),
        ([1.0],),
    ],
)
def test_arrays_that_do_not_fit_are_refused_as_in_python(given: tuple[Any, ...]) -> None:
    double = made(twice)
    for _ in range(3):
        double(x_of())
    with pytest.raises(CallInputError):
        double(*given)
    with pytest.raises(CallBoundsError):
        double(x_of(), n=3)
    np.testing.assert_array_equal(double(x_of())[0], x_of() + x_of())


def test_threads_that_call_at_once_are_not_in_each_others_way() -> None:
    def chain(b: Builder) -> tuple[Tensor, ...]:
        x = b.input("float32", (64, 64))
        return (softmax(softmax(x @ x) @ x),)

    chained = made(chain)
    arrays = [x_of(64, 64) * scale for scale in (1, 2, 3, 4)]
    wanted = [chained(array)[0].tobytes() for array in arrays]
    wrong: list[int] = []

    def calls(number: int) -> None:
        for _ in range(300):
            if chained(arrays[number])[0].tobytes() != wanted[number]:
                wrong.append(number)

    threads = [threading.Thread(target=calls, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_call_while_garbage_is_collected_for_another_is_one_of_its_own() -> None:
    double, x, other = made(twice), x_of(), x_of() + 100
    for _ in range(3):
        double(x)

    def again(phase: str, _: object) -> None:
        assert np.array_equal(double(other)[0], other + other), phase

    thresholds = gc.get_threshold()
    gc.callbacks.append(again)
    gc.set_threshold(7)
    try:
        kept = [double(x)[0] for _ in range(5000)]
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(again)
    assert all(np.array_equal(result, x + x) for result in kept)


def _call_and_drop(calls: list[threading.Thread]) -> None:
    for call in calls:
        call.start()
    gc.collect()
    for call in calls:
        call.join()


def test_a_program_may_go_while_it_is_called() -> None:
    x, seen = x_of(), list[Array]()
    for _ in range(8):
        double = made(twice)
        double(x)
        _call_and_drop([threading.Thread(target=lambda call=double: seen.extend(call(x))) for _ in range(3)])
    assert all(np.array_equal(result, x + x) for result in seen)
    assert len(seen) == 24


def test_memory_that_cannot_be_had_is_the_error_of_a_call_in_python() -> None:
    double, x, refused = made(twice), x_of(), list[MemoryError]()

    def huge(sizes: CallSizes) -> native_call.NativeCalls | None:
        outputs = tuple(replace(output, size=1 << 46) for output in sizes.outputs)
        made = native_call.native_calls(replace(sizes, outputs=outputs))

        def refusing(*given: Any) -> tuple[Array, ...] | None:
            assert made is not None
            try:
                return made.call(*given)
            except MemoryError as error:
                refused.append(error)
                raise

        return None if made is None else replace(made, call=refusing)

    with mock.patch.object(short_calls, "native_calls", huge):
        for _ in range(3):
            np.testing.assert_array_equal(double(x)[0], x + x)
        assert len(refused) == 2
        with (
            mock.patch.object(executor.BlockPool, "array", side_effect=MemoryError),
            pytest.raises(DeviceError, match="output 0"),
        ):
            double(x)


def test_calls_are_in_python_on_an_unknown_object_layout() -> None:
    before, x = made(twice), x_of()
    for _ in range(3):
        before(x)
    native_call.machine_code.cache_clear()
    with mock.patch.object(native_call, "is_known_layout", return_value=False):
        double = made(twice)
        with natively() as ran:
            for _ in range(3):
                np.testing.assert_array_equal(double(x)[0], x + x)
        assert ran == []
    native_call.machine_code.cache_clear()
    assert native_call.is_known_layout()
    gc.collect()
    np.testing.assert_array_equal(before(x)[0], x + x)


def test_a_result_in_a_block_of_its_own_is_written_there_in_machine_code() -> None:
    def large(b: Builder) -> tuple[Tensor, ...]:
        x = b.input("float32", (b.symbol("n", 1, 1 << 16),))
        return x + 1, x.sum(), x * 2

    function, results = made(large), list[tuple[Array, ...]]()
    sizes = (3, LEAST_LENT // 4 - 1, LEAST_LENT // 4, 1 << 16, 5, 1 << 16)
    with natively() as ran:
        for n in sizes:
            results.append(function(np.full(n, 3, np.float32), n=n))
            assert function.planned_peak_bytes(n=n) <= function.measured_peak_bytes
    assert ran == [True] * 5
    for n, (more, total, twofold) in zip(sizes, results, strict=True):
        np.testing.assert_array_equal(more, np.full(n, 4, np.float32))
        np.testing.assert_array_equal(twofold, np.full(n, 6, np.float32))
        assert total == 3 * n
        assert more.flags.carray
        assert address_of(more) % ALIGNMENT == 0


def test_calls_with_large_temporaries_are_in_python() -> None:
    doubled = chain(3).program()
    with natively() as ran:
        for n in (3, 4, MOST_TEMPORARIES // 8, MOST_TEMPORARIES // 8 + 1, 5):
            np.testing.assert_array_equal(doubled(np.ones(n, np.float32), n=n)[0], np.full(n, 8))
    assert ran == [True] * 3


def test_parameters_that_are_bound_are_read_where_they_are() -> None:
    b = Builder("bound")
    weight, x = b.parameter("float32", (5, 5)), b.input("float32", (4, 5))
    b.output(x @ weight)
    weights = x_of(5, 5)
    dense = program(compiled(b.graph())).bind({0: weights})
    with natively() as ran:
        for _ in range(3):
            np.testing.assert_allclose(dense(x_of())[0], x_of() @ weights, rtol=1e-5, atol=1e-6)
    assert ran == [True, True]


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype is not DType.UNIT])
def test_every_dtype_is_taken_in_machine_code(dtype: DType) -> None:
    b = Builder("dtypes")
    x = b.input(dtype, (3,))
    b.output(x.reshape(3, 1).expand(3, 2))
    spread, array = program(compiled(b.graph())), np.array([0, 1, 1]).astype(dtype.numpy)
    with natively() as ran:
        for _ in range(2):
            np.testing.assert_array_equal(spread(array)[0], np.repeat(array.reshape(3, 1), 2, 1))
    assert ran == [True]
