"""Races that a watched launch reports, and orders that are none."""

from __future__ import annotations

import numpy as np
import pytest

from . import Buffer, DeviceMemory, Race, SimtModule, Watch
from .kernels import BARRIER, GLOBAL_INDEX, TID, element, kernel

SHARED = ["@s = internal addrspace(3) global [64 x i32] undef"]


def _run(module: str, *arguments: Buffer, memory: DeviceMemory, threads: int = 64, blocks: int = 1) -> None:
    SimtModule(module).launch("k", (blocks,), (threads,), arguments, watch=Watch(memory))


def _store(index: str, value: str) -> str:
    return f"{element('%py', 'ptr %y', f'i32 {index}', 'i32')}  store i32 {value}, ptr %py\n"


def test_threads_that_store_the_same_value_do_not_race() -> None:
    memory = DeviceMemory()
    y = memory.fresh((1,), np.int32)
    _run(kernel("ptr %y", "  store i32 7, ptr %y\n"), y, memory=memory, blocks=3)
    assert y.numpy()[0] == 7


@pytest.mark.parametrize(
    "body",
    [
        "  store i32 %tid, ptr %y\n",
        f"{_store('%tid', '1')}  %v = load i32, ptr %y\n",
        f"  %v = load i32, ptr %y\n{_store('%tid', '1')}",
        "  store i32 %tid, ptr %y\n  %o = atomicrmw add ptr %y, i32 1 seq_cst\n",
        "  %o = atomicrmw add ptr %y, i32 1 seq_cst\n  %v = load i32, ptr %y\n",
    ],
)
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_race_in_global_memory_is_found_in_a_block_and_between_blocks(body: str, blocks: int) -> None:
    memory = DeviceMemory()
    y = memory.fresh((64,), np.int32)
    with pytest.raises(
        Race, match=r"(reads|writes) argument 0 \+\d+ by .*, which thread .* (read|wrote) with no barrier"
    ):
        _run(kernel("ptr %y", TID + body), y, memory=memory, threads=64 // blocks, blocks=blocks)


def test_blocks_race_in_global_memory_whatever_barriers_they_pass() -> None:
    memory = DeviceMemory()
    y = memory.fresh((64,), np.int32)
    body = f"{GLOBAL_INDEX}{_store('%linear', '1')}{BARRIER}  %v = load i32, ptr %y\n"
    with pytest.raises(Race, match=r"k, block \((\d), 0, 0\), .* of block \((?!\1)\d, 0, 0\)"):
        _run(kernel("ptr %y", body), y, memory=memory, threads=32, blocks=2)


def test_a_barrier_orders_what_a_block_does_in_global_memory() -> None:
    memory = DeviceMemory()
    y = memory.fresh((64,), np.int32)
    body = (
        f"{TID}{_store('%tid', '%tid')}{BARRIER}  %o = xor i32 %tid, 63\n{element('%q', 'ptr %y', 'i32 %o', 'i32')}"
        f"  %v = load i32, ptr %q\n{BARRIER}  store i32 %v, ptr %py\n"
    )
    _run(kernel("ptr %y", body), y, memory=memory)
    assert y.numpy().tolist() == list(range(63, -1, -1))


def test_atomics_do_not_race_with_each_other() -> None:
    memory = DeviceMemory()
    y = memory.upload(np.zeros(2, np.int32))
    body = (
        "  %o = atomicrmw add ptr %y, i32 1 seq_cst\n  %a = load atomic i32, ptr %y monotonic, align 4\n"
        f"{element('%p', 'ptr %y', 'i32 1', 'i32')}  %c = cmpxchg ptr %p, i32 0, i32 5 seq_cst seq_cst\n"
    )
    _run(kernel("ptr %y", body), y, memory=memory, blocks=3)
    assert y.numpy().tolist() == [192, 5]


def _warp(sync: str, *, reads_first: bool) -> str:
    """Lanes use each other's words of shared memory with only `sync` between the two uses."""
    own = element("%own", "ptr addrspace(3) @s", "i32 %tid", "i32")
    other = f"  %o = xor i32 %tid, 1\n{element('%other', 'ptr addrspace(3) @s', 'i32 %o', 'i32')}"
    read, write = "  %v = load i32, ptr addrspace(3) %other\n", "  store i32 %tid, ptr addrspace(3) %own\n"
    return kernel(
        "", TID + own + other + (read + sync + write if reads_first else write + sync + read), globals_=SHARED
    )


WARP_BARRIER = "  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n"
SHUFFLE = "  %sh = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %tid, i32 1, i32 31)\n"


@pytest.mark.parametrize(
    ("sync", "reads_first", "races"),
    [
        (WARP_BARRIER, False, False),
        (WARP_BARRIER, True, False),
        (SHUFFLE, True, False),
        (SHUFFLE, False, True),
        ("", True, True),
        ("", False, True),
    ],
)
def test_a_warp_orders_its_lanes_by_its_barrier_and_reads_before_writes_by_any_collective(
    sync: str, reads_first: bool, races: bool
) -> None:
    module = _warp(sync, reads_first=reads_first)
    if races:
        with pytest.raises(Race):
            _run(module, memory=DeviceMemory())
    else:
        _run(module, memory=DeviceMemory())


@pytest.mark.parametrize("sync", [WARP_BARRIER, SHUFFLE])
def test_a_warp_orders_nothing_for_another_warp(sync: str) -> None:
    with pytest.raises(Race):
        _run(_warp(sync, reads_first=True).replace("xor i32 %tid, 1", "xor i32 %tid, 32"), memory=DeviceMemory())
