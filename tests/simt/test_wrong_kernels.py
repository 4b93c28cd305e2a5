"""Kernels with one mistake each: none of them gets through."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from . import DeviceMemory, DivergentBarrier, OutOfBounds, Race, SimtModule, UndefinedShuffle, Watch
from .kernels import BARRIER, add, block_sum, reverse, transpose

SEEDS = range(4)
DIVERGENT = (
    "  %some = icmp ult i32 %tid, 16\n  br i1 %some, label %one, label %two\n"
    f"one:\n{BARRIER}  br label %joined\ntwo:\n{BARRIER}  br label %joined\njoined:\n"
)
ONLY_SOME = (
    "  %some = icmp ult i32 %tid, 16\n  br i1 %some, label %one, label %joined\n"
    f"one:\n{BARRIER}  br label %joined\njoined:\n"
)


def _transposed(module: SimtModule, seed: int, *, watched: bool = False) -> tuple[NDArray[np.float32], bool]:
    memory = DeviceMemory()
    x = np.arange(1024, dtype=np.float32).reshape(32, 32)
    source, result = memory.upload(x), memory.fresh((32, 32), np.float32)
    watch = Watch(memory, [source]) if watched else None
    module.launch("k", (1,), (32, 32), [source, result], seed=seed, watch=watch)
    return result.numpy(), np.array_equal(result.numpy(), x.T)


def _summed(module: SimtModule, seed: int, *, watched: bool = False) -> bool:
    memory = DeviceMemory()
    x = np.arange(1, 5 * 128 + 1, dtype=np.float32).reshape(5, 128)
    source, result = memory.upload(x), memory.fresh((5,), np.float32)
    watch = Watch(memory, [source]) if watched else None
    module.launch("k", (5,), (128,), [source, result], seed=seed, watch=watch)
    return np.array_equal(result.numpy(), x.sum(axis=1))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dropped_barrier_gives_poison_in_the_result(seed: int) -> None:
    result, right = _transposed(SimtModule(transpose(barrier="")), seed)
    assert not right
    assert np.isnan(result).any()


def test_a_dropped_barrier_gives_a_wrong_sum_for_some_seed() -> None:
    module = SimtModule(block_sum(first_barrier=""))
    assert not all(_summed(module, seed) for seed in SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_watched_launch_names_both_sides_of_a_dropped_barrier(seed: int) -> None:
    with pytest.raises(
        Race, match=r"s @tile \+\d+ by `.*addrspace\(3\).*` in @k, .* of block \(0, 0, 0\) .*no barrier"
    ):
        _transposed(SimtModule(transpose(barrier="")), seed, watched=True)
    with pytest.raises(Race, match=r"thread \(\d+, 0, 0\) (reads|writes) @sums \+\d+ by `"):
        _summed(SimtModule(block_sum(first_barrier="")), seed, watched=True)


def test_a_store_behind_a_wrong_bound_is_found_in_the_border() -> None:
    memory = DeviceMemory()
    a, b = (memory.upload(np.ones(255, np.float32)) for _ in range(2))
    c = memory.fresh((255,), np.float32)
    SimtModule(add("%more")).launch("k", (1,), (256,), [a, b, c, 255])
    with pytest.raises(OutOfBounds, match=r"after the allocation of 1020 bytes .* the nearest 1 byte away"):
        c.numpy()


def test_a_watched_launch_stops_at_the_first_access_behind_a_wrong_bound() -> None:
    memory = DeviceMemory()
    a, b = (memory.upload(np.ones(255, np.float32)) for _ in range(2))
    c = memory.fresh((255,), np.float32)
    with pytest.raises(
        OutOfBounds,
        match=r"k, block \(0, 0, 0\), thread \(255, 0, 0\): 4 bytes at argument 0 \+1020 .*%va = load float",
    ):
        SimtModule(add("%more")).launch("k", (1,), (256,), [a, b, c, 255], watch=Watch(memory, [a, b]))


def test_a_missing_guard_is_found_however_far_behind_the_end_it_reads() -> None:
    memory = DeviceMemory()
    a = memory.upload(np.ones(8, np.float32))
    with pytest.raises(OutOfBounds):
        SimtModule(add("1000000")).launch("k", (4,), (256,), [a, a, a, 8], watch=Watch(memory))


@pytest.mark.parametrize("distances", [(16, 8, 4, 2, 2), (16, 8, 4, 2), (8, 4, 2, 1, 1)])
def test_a_wrong_shuffle_distance_gives_a_wrong_sum(distances: tuple[int, ...]) -> None:
    assert not _summed(SimtModule(block_sum(distances=distances, mode="bfly")), 0)


def test_a_shuffle_from_a_lane_outside_of_the_mask_is_refused() -> None:
    # Lanes 0 to 15 agree on a mask of themselves and then read sixteen lanes further down.
    with pytest.raises(UndefinedShuffle, match=r"reads lane \d+ in `.*shfl\.sync\.down.*only the lanes of 0x0000ffff"):
        _half_warp("i32 65535")


def _half_warp(mask: str) -> None:
    memory = DeviceMemory()
    source, result = memory.upload(np.ones(16, np.float32)), memory.fresh((1,), np.float32)
    SimtModule(block_sum(mask=mask.removeprefix("i32 "))).launch("k", (1,), (16,), [source, result])


@pytest.mark.parametrize("seed", SEEDS)
def test_threads_at_two_calls_of_a_barrier_diverge(seed: int) -> None:
    with pytest.raises(DivergentBarrier, match=r"another call of the same barrier"):
        _summed(SimtModule(block_sum(first_barrier=DIVERGENT)), seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_threads_that_skip_a_barrier_and_exit_leave_the_others_stuck(seed: int) -> None:
    with pytest.raises(DivergentBarrier, match=r"16 threads \(0, 1, 2, 3, 4, 5, 6, 7, …\) wait at .* have exited"):
        _summed(SimtModule(block_sum(first_barrier=ONLY_SOME)), seed)


def test_a_store_beside_a_shared_array_is_found_after_the_block() -> None:
    module = SimtModule(transpose(rows=31))
    with pytest.raises(OutOfBounds, match=r"k, block \(0, 0, 0\): bytes beside the shared array of 4092 bytes"):
        _transposed(module, 0)
    with pytest.raises(OutOfBounds, match=r"4 bytes at @tile \+\d{4} .*store float %v, ptr addrspace\(3\) %pin"):
        _transposed(module, 0, watched=True)


def test_too_little_dynamic_shared_memory_is_found() -> None:
    memory = DeviceMemory()
    source, result = memory.upload(np.ones(64, np.float32)), memory.fresh((64,), np.float32)
    with pytest.raises(OutOfBounds, match="shared array of 252 bytes"):
        SimtModule(reverse()).launch("k", (1,), (64,), [source, result], dynamic_shared_bytes=252)


def test_shared_memory_keeps_nothing_from_the_block_before() -> None:
    module, memory = SimtModule(transpose(barrier=BARRIER, pitch=32)), DeviceMemory()
    x = np.arange(1024, dtype=np.float32).reshape(32, 32)
    source, result = memory.upload(x), memory.fresh((32, 32), np.float32)
    module.launch("k", (1,), (32, 16), [source, result])
    assert np.isnan(result.numpy()[:16, 16:]).all(), "rows 16 to 31 were never stored in the tile"
