"""Right kernels compute what they should, in any order of threads and blocks, under observation and without."""

from __future__ import annotations

import numpy as np
import pytest

from . import DeviceMemory, SimtModule, Watch
from .kernels import GLOBAL_INDEX, add, block_sum, element, histogram, kernel, reverse, transpose

SEEDS = range(4)


@pytest.mark.parametrize("count", [1, 255, 256, 257, 1000])
def test_a_vector_addition_covers_any_length_and_nothing_else(count: int) -> None:
    module, memory = SimtModule(add()), DeviceMemory()
    a = np.linspace(0, 1, count, dtype=np.float32)
    buffers = memory.upload(a), memory.upload(2 * a), memory.fresh((count,), np.float32)
    for seed in SEEDS:
        watch = Watch(memory, buffers[:2])
        module.launch("k", (-(-count // 256),), (256,), [*buffers, count], seed=seed, watch=watch)
        watch.stored_once(buffers[2])
    np.testing.assert_array_equal(buffers[2].numpy(), a + 2 * a)
    assert not buffers[2].unwritten().any()


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("mode", ["down", "bfly"])
def test_a_block_sums_its_elements_by_shuffles_and_shared_memory(mode: str, watched: bool) -> None:
    module, memory = SimtModule(block_sum(mode=mode)), DeviceMemory()
    x = np.arange(5 * 128, dtype=np.float32).reshape(5, 128)
    source, result = memory.upload(x), memory.fresh((5,), np.float32)
    for seed in SEEDS:
        watch = Watch(memory, [source]) if watched else None
        module.launch("k", (5,), (128,), [source, result], seed=seed, watch=watch)
        np.testing.assert_array_equal(result.numpy(), x.sum(axis=1))


@pytest.mark.parametrize("watched", [False, True])
def test_a_tile_is_transposed_through_shared_memory(watched: bool) -> None:
    module, memory = SimtModule(transpose()), DeviceMemory()
    x = np.arange(1024, dtype=np.float32).reshape(32, 32)
    source, result = memory.upload(x), memory.fresh((32, 32), np.float32)
    for seed in SEEDS:
        watch = Watch(memory, [source]) if watched else None
        module.launch("k", (1,), (32, 32), [source, result], seed=seed, watch=watch)
        np.testing.assert_array_equal(result.numpy(), x.T)


@pytest.mark.parametrize("threads", [1, 33, 1024])
def test_dynamic_shared_memory_has_the_size_of_the_launch(threads: int) -> None:
    module, memory = SimtModule(reverse()), DeviceMemory()
    x = np.arange(3 * threads, dtype=np.float32).reshape(3, threads)
    source, result = memory.upload(x), memory.fresh(x.shape, np.float32)
    arguments = [source, result]
    module.launch("k", (3,), (threads,), arguments, dynamic_shared_bytes=4 * threads, watch=Watch(memory, [source]))
    np.testing.assert_array_equal(result.numpy(), x[:, ::-1])
    assert module.entries["k"].uses_dynamic_shared
    assert module.entries["k"].static_shared_bytes == 0


def test_atomics_of_a_block_and_of_the_grid_count_every_value() -> None:
    module, memory = SimtModule(histogram()), DeviceMemory()
    x = np.random.default_rng(0).integers(0, 16, 4 * 96, dtype=np.int32)
    source, result = memory.upload(x), memory.upload(np.zeros(16, np.int32))
    module.launch("k", (4,), (96,), [source, result], watch=Watch(memory, [source]))
    np.testing.assert_array_equal(result.numpy(), np.bincount(x, minlength=16))


def test_every_thread_of_a_three_dimensional_launch_knows_its_place() -> None:
    registers = [f"{group}.{axis}" for group in ("tid", "ctaid", "ntid", "nctaid") for axis in "xyz"]
    registers += ["laneid", "warpsize"]
    body = "".join(f"  %r{n} = call i32 @llvm.nvvm.read.ptx.sreg.{name}()\n" for n, name in enumerate(registers))
    # Rows are numbered as CUDA numbers threads: x first, in a block and then over the blocks.
    body += (
        "  %bz = mul i32 %r5, %r10\n  %by = add i32 %bz, %r4\n  %bx = mul i32 %by, %r9\n  %b = add i32 %bx, %r3\n"
        "  %tz = mul i32 %r2, %r7\n  %ty = add i32 %tz, %r1\n  %tx = mul i32 %ty, %r6\n  %t = add i32 %tx, %r0\n"
        "  %area = mul i32 %r6, %r7\n  %volume = mul i32 %area, %r8\n  %start = mul i32 %b, %volume\n"
        f"  %row = add i32 %start, %t\n  %at = mul i32 %row, {len(registers)}\n"
    )
    for n in range(len(registers)):
        body += f"  %at{n} = add i32 %at, {n}\n" + element(f"%p{n}", "ptr %y", f"i32 %at{n}", "i32")
        body += f"  store i32 %r{n}, ptr %p{n}\n"
    module, memory = SimtModule(kernel("ptr %y", body)), DeviceMemory()
    grid, block = (2, 3, 4), (5, 2, 3)
    result = memory.fresh((24 * 30, len(registers)), np.int32)
    watch = Watch(memory)
    module.launch("k", grid, block, [result], seed=9, watch=watch)
    watch.stored_once(result)
    rows = result.numpy()
    threads, blocks = np.tile(np.arange(30), 24), np.repeat(np.arange(24), 30)
    expected = [threads % 5, threads // 5 % 2, threads // 10, blocks % 2, blocks // 2 % 3, blocks // 6]
    np.testing.assert_array_equal(rows[:, :6], np.stack(expected, axis=1))
    assert (rows[:, 6:12] == [*block, *grid]).all()
    np.testing.assert_array_equal(rows[:, 12], threads % 32)
    assert (rows[:, 13] == 32).all()


def test_blocks_run_in_an_order_that_the_seed_changes() -> None:
    body = f"{GLOBAL_INDEX}  %turn = atomicrmw add ptr %clock, i32 1 monotonic\n"
    body += f"{element('%p', 'ptr %y', 'i64 %i', 'i32')}  store i32 %turn, ptr %p\n"
    module, memory = SimtModule(kernel("ptr %clock, ptr %y", body)), DeviceMemory()
    orders: set[bytes] = set()
    for seed in SEEDS:
        clock, result = memory.upload(np.zeros(1, np.int32)), memory.fresh((8, 64), np.int32)
        module.launch("k", (8,), (64,), [clock, result], seed=seed)
        turns = result.numpy()
        assert sorted(turns.ravel()) == list(range(512))
        blocks = turns.min(axis=1) // 64
        assert (turns // 64 == blocks[:, None]).all(), "a block runs to its end before the next begins"
        orders.add(turns.tobytes())
    assert len(orders) == len(SEEDS)


def test_the_same_seed_gives_the_same_order() -> None:
    body = f"{GLOBAL_INDEX}  %turn = atomicrmw add ptr %clock, i32 1 monotonic\n"
    body += f"{element('%p', 'ptr %y', 'i64 %i', 'i32')}  store i32 %turn, ptr %p\n"
    module, memory = SimtModule(kernel("ptr %clock, ptr %y", body)), DeviceMemory()
    runs: list[bytes] = []
    for _ in range(2):
        clock, result = memory.upload(np.zeros(1, np.int32)), memory.fresh((512,), np.int32)
        module.launch("k", (8,), (64,), [clock, result], seed=5)
        runs.append(result.numpy().tobytes())
    assert runs[0] == runs[1]
