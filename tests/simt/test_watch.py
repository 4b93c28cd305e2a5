"""A watched launch: accesses inside and outside of what it may touch, and how often a byte was stored to."""

from __future__ import annotations

import numpy as np
import pytest

from . import Buffer, DeviceMemory, Misaligned, OutOfBounds, ReadOnlyWritten, SimtModule, UnsupportedKernel, Watch
from .kernels import GLOBAL_INDEX, TID, add, element, kernel


def _run(module: str, *arguments: Buffer | int, memory: DeviceMemory, threads: int = 64, blocks: int = 1) -> Watch:
    watch = Watch(memory)
    SimtModule(module).launch("k", (blocks,), (threads,), arguments, watch=watch)
    return watch


def _store(index: str, value: str, kind: str = "i32") -> str:
    return f"{element('%py', 'ptr %y', f'i32 {index}', kind)}  store {kind} {value}, ptr %py\n"


def test_elements_that_no_thread_stores_to_are_named() -> None:
    memory = DeviceMemory()
    y = memory.fresh((2, 64), np.int32)
    watch = _run(kernel("ptr %y", TID + _store("%tid", "%tid")), y, memory=memory)
    with pytest.raises(AssertionError, match=r"64 of 128 elements were never stored to, first \(1, 0\)"):
        watch.stored_once(y)
    assert y.unwritten()[1].all()
    assert not y.unwritten()[0].any()


def test_elements_that_several_threads_store_to_are_named_even_when_the_value_is_the_same() -> None:
    memory = DeviceMemory()
    y = memory.fresh((64,), np.int32)
    body = f"{GLOBAL_INDEX}  %half = lshr i32 %linear, 1\n" + _store("%half", "%half")
    watch = _run(kernel("ptr %y", body), y, memory=memory, blocks=2)
    with pytest.raises(AssertionError, match=r"64 of 64 elements were stored to by several threads, first \(0,\)"):
        watch.stored_once(y)
    assert (watch.stores(y) == 2).all()


def test_stores_are_counted_over_the_launches_of_a_watch() -> None:
    memory = DeviceMemory()
    y = memory.fresh((128,), np.int32)
    module = SimtModule(kernel("ptr %y, i32 %from", f"{TID}  %at = add i32 %tid, %from\n" + _store("%at", "%at")))
    watch = Watch(memory)
    for first in (0, 64):
        module.launch("k", (1,), (64,), [y, first], watch=watch)
    watch.stored_once(y)
    module.launch("k", (1,), (64,), [y, 64], watch=watch)
    assert watch.stores(y).max(axis=1).tolist() == [1] * 64 + [2] * 64


def test_a_thread_that_stores_twice_counts_once() -> None:
    memory = DeviceMemory()
    y = memory.fresh((64,), np.int32)
    watch = _run(kernel("ptr %y", TID + _store("%tid", "0") + "  store i32 %tid, ptr %py\n"), y, memory=memory)
    watch.stored_once(y)


@pytest.mark.parametrize(("kind", "size"), [("i8", 1), ("half", 2), ("i64", 8), ("<4 x float>", 16), ("<3 x i16>", 6)])
def test_every_byte_of_an_access_counts(kind: str, size: int) -> None:
    memory = DeviceMemory()
    y = memory.fresh((2 * size,), np.uint8)
    body = element("%p", "ptr %y", f"i64 {size - 1}", "i8") + f"  store {kind} zeroinitializer, ptr %p, align 1\n"
    watch = _run(kernel("ptr %y", body), y, memory=memory, threads=1)
    assert watch.stores(y).ravel().tolist() == [0] * (size - 1) + [1] * size + [0]


@pytest.mark.parametrize(
    ("access", "offset"),
    [
        *(("store i32 0, ptr %p, align 1", offset) for offset in (-1, 61, 64, 1 << 20)),
        *(("%v = load i32, ptr %p, align 1", offset) for offset in (-4, -1, 61, 64)),
        *(("%o = atomicrmw add ptr %p, i32 1 seq_cst, align 4", offset) for offset in (-4, 64)),
        ("%o = cmpxchg ptr %p, i32 0, i32 5 seq_cst seq_cst, align 4", 64),
    ],
)
def test_an_access_that_is_not_wholly_inside_an_allocation_is_refused(access: str, offset: int) -> None:
    memory = DeviceMemory()
    y = memory.fresh((64,), np.uint8)
    body = element("%p", "ptr %y", f"i64 {offset}", "i8") + f"  {access}\n"
    with pytest.raises(OutOfBounds, match=r"k, block \(0, 0, 0\), thread \(0, 0, 0\): 4 bytes at argument 0 [+-]\d+ "):
        _run(kernel("ptr %y", body), y, memory=memory, threads=1)
    assert y.unwritten().all()


def test_an_allocation_that_was_given_back_is_outside() -> None:
    memory = DeviceMemory()
    y = memory.fresh((64,), np.int32)
    memory.free(y.address)
    with pytest.raises(OutOfBounds):
        _run(kernel("ptr %y", TID + _store("%tid", "0")), y, memory=memory)


def test_private_arrays_and_constants_may_be_used() -> None:
    memory = DeviceMemory()
    y = memory.fresh((4,), np.int32)
    body = (
        f"  %room = alloca [4 x i32]\n{TID}{element('%in', 'ptr %room', 'i32 %tid', 'i32')}"
        f"{element('%c', 'ptr @table', 'i32 %tid', 'i32')}  %v = load i32, ptr %c\n  store i32 %v, ptr %in\n"
        "  %w = load i32, ptr %in\n" + _store("%tid", "%w")
    )
    table = ["@table = private unnamed_addr constant [4 x i32] [i32 3, i32 1, i32 4, i32 1]"]
    for threads in (4, 5):
        if threads == 4:
            _run(kernel("ptr %y", body, globals_=table), y, memory=memory, threads=threads)
            assert y.numpy().tolist() == [3, 1, 4, 1]
        else:
            with pytest.raises(OutOfBounds, match=r"load i32, ptr %c"):
                _run(kernel("ptr %y", body, globals_=table), y, memory=memory, threads=threads)


def test_a_buffer_that_may_only_be_read_is_not_written() -> None:
    memory = DeviceMemory()
    a, b, c = (memory.upload(np.ones(64, np.float32)) for _ in range(3))
    with pytest.raises(
        ReadOnlyWritten,
        match=r"`store float %v, ptr %pc, align 4` in @k writes to argument 2 \+\d+, which is read-only",
    ):
        SimtModule(add()).launch("k", (1,), (64,), [a, b, c, 64], watch=Watch(memory, [c]))
    assert (c.numpy() == 1).all()


def test_an_access_that_promises_too_much_alignment_is_refused() -> None:
    memory = DeviceMemory()
    a, c = memory.upload(np.ones(64, np.float32)), memory.fresh((64,), np.float32)
    with pytest.raises(
        Misaligned,
        match=r"%va = load float, ptr %pa, align 16` in @k wants a multiple of 16, and argument 0 \+\d+ is 0x",
    ):
        SimtModule(add(alignment=16)).launch("k", (1,), (64,), [a, a, c, 64], watch=Watch(memory))


@pytest.mark.parametrize("aligned", [1, 2, 64, 256])
def test_allocations_are_no_more_aligned_than_asked_for(aligned: int) -> None:
    memory = DeviceMemory()
    for _ in range(20):
        address = memory.allocate(10, aligned)
        assert address % aligned == 0
        assert address % (2 * aligned) != 0


def test_unwatchable_operations_are_refused_by_name() -> None:
    memory = DeviceMemory()
    y = memory.fresh((64,), np.int32)
    text = kernel("ptr %y", "  call void @llvm.memset.p0.i64(ptr %y, i8 0, i64 256, i1 false)\n")
    with pytest.raises(UnsupportedKernel, match=r"a watched launch cannot follow .*llvm\.memset"):
        _run(text, y, memory=memory)
    SimtModule(text).launch("k", (1,), (1,), [y])
    assert not y.numpy().any()


def test_a_watch_knows_only_its_own_memory() -> None:
    other = DeviceMemory().fresh((4,), np.int32)
    with pytest.raises(OutOfBounds, match="in no allocation of the watched memory"):
        Watch(DeviceMemory(), [other])
    with pytest.raises(OutOfBounds, match="in no allocation of the watched memory"):
        Watch(DeviceMemory()).stores(other)


def test_a_launch_may_touch_only_what_its_arguments_point_into() -> None:
    memory = DeviceMemory()
    x, y = memory.upload(np.ones(4, np.int32)), memory.fresh((4,), np.int32)
    text = kernel("i64 %x, ptr %y", "  %p = inttoptr i64 %x to ptr\n  %v = load i32, ptr %p\n  store i32 %v, ptr %y\n")
    with pytest.raises(OutOfBounds, match=r"%v = load i32, ptr %p"):
        _run(text, x, y, memory=memory, threads=1)
    text = kernel("ptr %x, ptr %y", f"{element('%p', 'ptr %y', 'i32 1', 'i32')}  store i32 2, ptr %p\n")
    _run(text, x, y.address + 4, memory=memory, threads=1)
    assert y.numpy()[2] == 2
