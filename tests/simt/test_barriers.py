"""Barriers in all their spellings, and those that reduce a predicate."""

from __future__ import annotations

import numpy as np
import pytest

from . import DeviceMemory, DivergentBarrier, SimtModule, Watch
from .kernels import TID, element, kernel

SPELLINGS = [
    "@llvm.nvvm.barrier0()",
    "@llvm.nvvm.bar.sync(i32 0)",
    "@llvm.nvvm.barrier.n(i32 0)",
    "@llvm.nvvm.barrier(i32 1, i32 96)",
    "@llvm.nvvm.barrier.sync(i32 3)",
    "@llvm.nvvm.barrier.sync.cnt(i32 2, i32 96)",
    "@llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)",
    "@llvm.nvvm.barrier.cta.sync.aligned.count(i32 0, i32 96)",
    "@llvm.nvvm.barrier.cta.sync.all(i32 15)",
    "@llvm.nvvm.barrier.cta.sync.count(i32 0, i32 96)",
]
ROTATE = (
    f"{TID}{element('%px', 'ptr %x', 'i32 %tid')}  %v = load float, ptr %px\n"
    f"{element('%pin', 'ptr addrspace(3) @s', 'i32 %tid')}  store float %v, ptr addrspace(3) %pin\n"
    "  call void BARRIER\n  %after = add i32 %tid, 1\n  %next = urem i32 %after, 96\n"
    f"{element('%pout', 'ptr addrspace(3) @s', 'i32 %next')}  %w = load float, ptr addrspace(3) %pout\n"
    f"{element('%py', 'ptr %y', 'i32 %tid')}  store float %w, ptr %py\n"
)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_barrier_makes_stores_visible_to_the_block(spelling: str) -> None:
    arrays = ["@s = internal addrspace(3) global [96 x float] undef"]
    module = SimtModule(kernel("ptr %x, ptr %y", ROTATE.replace("BARRIER", spelling), globals_=arrays))
    memory = DeviceMemory()
    x = np.arange(96, dtype=np.float32)
    source, result = memory.upload(x), memory.fresh((96,), np.float32)
    for seed in range(3):
        module.launch("k", (1,), (96,), [source, result], seed=seed, watch=Watch(memory, [source]))
        np.testing.assert_array_equal(result.numpy(), np.roll(x, -1))


@pytest.mark.parametrize("aligned", ["aligned.", ""])
@pytest.mark.parametrize(
    ("operation", "kind", "expected"), [("popc", "i32", [5, 64, 0]), ("and", "i1", [0, 1, 0]), ("or", "i1", [1, 1, 0])]
)
@pytest.mark.parametrize("count", ["", ", i32 64"])
def test_a_barrier_reduces_a_predicate(
    operation: str, kind: str, expected: list[int], aligned: str, count: str
) -> None:
    name = f"@llvm.nvvm.barrier.cta.red.{operation}.{aligned}{'count' if count else 'all'}"
    widened = "  %r = zext i1 %v to i32\n" if kind == "i1" else "  %r = or i32 %v, 0\n"
    body = (
        f"{TID}  %p = icmp ult i32 %tid, %n\n  %v = call {kind} {name}(i32 0{count}, i1 %p)\n{widened}"
        f"{element('%py', 'ptr %y', 'i32 %tid', 'i32')}  store i32 %r, ptr %py\n"
    )
    module, memory = SimtModule(kernel("ptr %y, i32 %n", body)), DeviceMemory()
    for truths, value in zip((5, 64, 0), expected, strict=True):
        result = memory.fresh((64,), np.int32)
        module.launch("k", (1,), (64,), [result, truths], seed=truths)
        assert (result.numpy() == value).all()


def test_warps_may_meet_at_barriers_of_their_own_number() -> None:
    arrays = ["@s = internal addrspace(3) global [128 x float] undef"]
    body = (
        f"{TID}  %pair = lshr i32 %tid, 6\n  %number = add i32 %pair, 1\n"
        f"{element('%px', 'ptr %x', 'i32 %tid')}  %v = load float, ptr %px\n"
        f"{element('%pin', 'ptr addrspace(3) @s', 'i32 %tid')}  store float %v, ptr addrspace(3) %pin\n"
        "  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 %number, i32 64)\n  %other = xor i32 %tid, 63\n"
        f"{element('%pout', 'ptr addrspace(3) @s', 'i32 %other')}  %w = load float, ptr addrspace(3) %pout\n"
        f"{element('%py', 'ptr %y', 'i32 %tid')}  store float %w, ptr %py\n"
    )
    module, memory = SimtModule(kernel("ptr %x, ptr %y", body, globals_=arrays)), DeviceMemory()
    x = np.arange(128, dtype=np.float32)
    source, result = memory.upload(x), memory.fresh((128,), np.float32)
    for seed in range(3):
        module.launch("k", (1,), (128,), [source, result], seed=seed)
        np.testing.assert_array_equal(result.numpy(), x.reshape(2, 64)[:, ::-1].ravel())


def test_a_barrier_for_more_threads_than_come_is_never_passed() -> None:
    body = f"{TID}  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 0, i32 96)\n"
    with pytest.raises(DivergentBarrier, match=r"nothing can go on: 64 threads .* wait at"):
        SimtModule(kernel("", body)).launch("k", (1,), (64,), [])


@pytest.mark.parametrize("turns", [(3, 3), (3, 4)])
def test_threads_that_go_round_a_loop_of_barriers_unequally_are_stuck(turns: tuple[int, int]) -> None:
    body = (
        f"{TID}  %high = icmp ult i32 %tid, 32\n  %turns = select i1 %high, i32 {turns[0]}, i32 {turns[1]}\n"
        "  br label %loop\nloop:\n  %t = phi i32 [ 0, %0 ], [ %t.next, %loop ]\n"
        "  call void @llvm.nvvm.barrier0()\n  %t.next = add i32 %t, 1\n  %more = icmp ult i32 %t.next, %turns\n"
        "  br i1 %more, label %loop, label %done\ndone:\n"
    )
    module = SimtModule(kernel("", body))
    if turns[0] == turns[1]:
        module.launch("k", (2,), (64,), [])
    else:
        with pytest.raises(DivergentBarrier, match=r"32 threads .* wait at .* 32 threads .* have exited"):
            module.launch("k", (2,), (64,), [])


def test_a_module_runs_on_after_a_launch_that_failed() -> None:
    body = (
        f"{TID}  %some = icmp ult i32 %tid, %n\n  br i1 %some, label %wait, label %done\n"
        "wait:\n  call void @llvm.nvvm.barrier0()\n  br label %done\ndone:\n"
    )
    module = SimtModule(kernel("i32 %n", body))
    for _ in range(3):
        with pytest.raises(DivergentBarrier):
            module.launch("k", (1,), (64,), [63])
        module.launch("k", (1,), (64,), [64])
