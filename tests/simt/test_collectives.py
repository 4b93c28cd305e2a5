"""Shuffles, votes and reductions of a warp, against PTX's own definitions written in NumPy."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from . import DeviceMemory, DivergentCollective, SimtModule
from .kernels import TID, element, kernel

LANES = np.arange(32)


def _source(mode: str, lane: int, operand: int, clamp: int) -> tuple[int, bool]:
    """The lane read from, and whether it is in range: the pseudo-code of shfl.sync in the PTX ISA."""
    operand, segment = operand & 31, clamp >> 8 & 31
    limit, lowest = lane & segment | clamp & 31 & ~segment, lane & segment
    if mode == "up":
        source, valid = lane - operand, lane - operand >= limit
    elif mode == "down":
        source, valid = lane + operand, lane + operand <= limit
    elif mode == "bfly":
        source, valid = lane ^ operand, (lane ^ operand) <= limit
    else:
        source = lowest | operand & ~segment & 31
        valid = source <= limit
    return (source if valid else lane), valid


def _shuffle_kernel(mode: str, kind: str, suffix: str) -> str:
    name = f"llvm.nvvm.shfl.sync.{mode}.{suffix}"
    return kernel(
        "ptr %x, ptr %y, ptr %p, i32 %operand, i32 %clamp",
        f"{TID}{element('%px', 'ptr %x', 'i32 %tid', kind)}  %v = load {kind}, ptr %px\n"
        f"  %both = call {{ {kind}, i1 }} @{name}p(i32 -1, {kind} %v, i32 %operand, i32 %clamp)\n"
        f"  %moved = extractvalue {{ {kind}, i1 }} %both, 0\n  %valid = extractvalue {{ {kind}, i1 }} %both, 1\n"
        f"  %again = call {kind} @{name}(i32 -1, {kind} %moved, i32 %operand, i32 %clamp)\n"
        f"{element('%py', 'ptr %y', 'i32 %tid', kind)}  store {kind} %again, ptr %py\n"
        f"  %byte = zext i1 %valid to i8\n{element('%pp', 'ptr %p', 'i32 %tid', 'i8')}  store i8 %byte, ptr %pp\n",
    )


KINDS = {"f32": ("float", np.float32), "i32": ("i32", np.int32)}


@cache
def _shuffle_module(mode: str, suffix: str) -> SimtModule:
    return SimtModule(_shuffle_kernel(mode, KINDS[suffix][0], suffix))


@settings(max_examples=60)
@given(
    st.sampled_from(["idx", "up", "down", "bfly"]),
    st.sampled_from(sorted(KINDS)),
    st.integers(0, 63),
    st.integers(0, 31),
    st.sampled_from([0, 16, 24, 28, 30, 31]),
    st.integers(0, 3),
)
def test_a_shuffle_reads_the_lane_that_ptx_says(
    mode: str, suffix: str, operand: int, clamp: int, segment: int, seed: int
) -> None:
    dtype = KINDS[suffix][1]
    memory = DeviceMemory()
    x = np.arange(100, 132).astype(dtype)
    source, result, valid = memory.upload(x), memory.fresh((32,), dtype), memory.fresh((32,), np.uint8)
    packed = segment << 8 | clamp
    module = _shuffle_module(mode, suffix)
    module.launch("k", (1,), (32,), [source, result, valid, operand, packed], seed=seed)
    once = [_source(mode, lane, operand, packed) for lane in range(32)]
    sources = np.array([lane for lane, _ in once])
    np.testing.assert_array_equal(result.numpy(), x[sources[sources]])
    np.testing.assert_array_equal(valid.numpy(), [in_range for _, in_range in once])


def _words(call: str, kind: str) -> str:
    widened = "" if kind == "i32" else "  %r = zext i1 %v to i32\n"
    return kernel(
        "ptr %x, ptr %y, i32 %mask",
        f"{TID}  %bit = shl i32 1, %tid\n  %own = and i32 %bit, %mask\n  %member = icmp ne i32 %own, 0\n"
        f"  br i1 %member, label %go, label %done\ngo:\n{element('%px', 'ptr %x', 'i32 %tid', 'i32')}"
        f"  %a = load i32, ptr %px\n  %b = icmp ne i32 %a, 0\n  %{'r' if kind == 'i32' else 'v'} = call {kind} {call}\n"
        f"{widened}{element('%py', 'ptr %y', 'i32 %tid', 'i32')}  store i32 %r, ptr %py\n  br label %done\ndone:\n",
    )


def _bits(values: NDArray[np.int32], members: NDArray[np.bool_]) -> int:
    return sum(1 << int(lane) for lane in LANES[members & (values != 0)])


FOLDS = {
    "redux.sync.add": lambda v: int(v.astype(np.int64).sum()),
    "redux.sync.min": lambda v: int(v.min()),
    "redux.sync.max": lambda v: int(v.max()),
    "redux.sync.umin": lambda v: int(v.view(np.uint32).min()),
    "redux.sync.umax": lambda v: int(v.view(np.uint32).max()),
    "redux.sync.and": lambda v: int(np.bitwise_and.reduce(v)),
    "redux.sync.or": lambda v: int(np.bitwise_or.reduce(v)),
    "redux.sync.xor": lambda v: int(np.bitwise_xor.reduce(v)),
    "vote.all.sync": lambda v: int((v != 0).all()),
    "vote.any.sync": lambda v: int((v != 0).any()),
    "vote.uni.sync": lambda v: int((v != 0).all() or (v == 0).all()),
}


@pytest.mark.parametrize("name", [*FOLDS, "vote.ballot.sync"])
@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0x0000FFFF, 0x80000001, 0x12345678])
def test_votes_and_reductions_fold_the_lanes_of_their_mask(name: str, mask: int) -> None:
    reduces, ballots = name.startswith("redux"), "ballot" in name
    arguments = "i32 %a, i32 %mask" if reduces else "i32 %mask, i1 %b"
    module = SimtModule(_words(f"@llvm.nvvm.{name}({arguments})", "i32" if reduces or ballots else "i1"))
    members = (mask >> LANES & 1).astype(bool)
    for seed, values in enumerate(_values()):
        memory = DeviceMemory()
        source, result = memory.upload(values), memory.fresh((32,), np.uint32)
        module.launch("k", (1,), (32,), [source, result, mask], seed=seed)
        expected = _bits(values, members) if ballots else FOLDS[name](values[members])
        np.testing.assert_array_equal(result.numpy()[members], np.uint32(expected & 0xFFFFFFFF))


def _values() -> list[NDArray[np.int32]]:
    rng = np.random.default_rng(3)
    wild = rng.integers(-(2**31), 2**31 - 1, 32, dtype=np.int32, endpoint=True)
    return [np.zeros(32, np.int32), np.ones(32, np.int32), wild, wild * rng.integers(0, 2, 32, dtype=np.int32)]


def test_the_active_mask_promises_no_more_than_the_lane_itself() -> None:
    body = f"{TID}  %m = call i32 @llvm.nvvm.activemask()\n{element('%p', 'ptr %y', 'i32 %tid', 'i32')}"
    memory = DeviceMemory()
    result = memory.fresh((64,), np.uint32)
    SimtModule(kernel("ptr %y", f"{body}  store i32 %m, ptr %p\n")).launch("k", (1,), (64,), [result])
    np.testing.assert_array_equal(result.numpy(), np.tile(np.uint32(1) << np.arange(32, dtype=np.uint32), 2))


SYNC = "  call void @llvm.nvvm.bar.warp.sync(i32 {mask})\n"


@pytest.mark.parametrize(
    ("body", "threads", "message"),
    [
        (SYNC.format(mask=3), 4, r"is lane [23], which the mask 0x00000003 of its own call .* does not name"),
        (SYNC.format(mask=-1), 16, r"those of 0xffff0000 have exited or are not in the block"),
        (
            "  %c = icmp ult i32 %tid, 4\n  br i1 %c, label %a, label %b\na:\n"
            + SYNC.format(mask=-1)
            + "  br label %b\nb:\n",
            32,
            r"waits in .* for the lanes of mask 0xffffffff, and those of 0xfffffff0 have exited",
        ),
        (
            "  %c = icmp ult i32 %tid, 4\n  br i1 %c, label %a, label %b\na:\n"
            + SYNC.format(mask=-1)
            + "  ret void\nb:\n"
            + SYNC.format(mask=-1),
            32,
            r"lanes of mask 0xffffffff are in different calls",
        ),
        (
            "  %c = icmp ult i32 %tid, 4\n  br i1 %c, label %a, label %b\na:\n"
            + SYNC.format(mask=255)
            + "  ret void\nb:\n"
            + SYNC.format(mask=-1),
            32,
            r"nothing can go on: 32 threads .* wait in",
        ),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_collective_that_its_lanes_do_not_agree_on_is_refused(
    body: str, threads: int, message: str, seed: int
) -> None:
    with pytest.raises(DivergentCollective, match=message):
        SimtModule(kernel("", TID + body)).launch("k", (1,), (threads,), [], seed=seed)


def test_disjoint_parts_of_a_warp_have_collectives_of_their_own() -> None:
    body = (
        f"{TID}  %odd = and i32 %tid, 1\n  %mask = shl i32 1431655765, %odd\n"
        "  %sum = call i32 @llvm.nvvm.redux.sync.add(i32 %tid, i32 %mask)\n"
        f"{element('%p', 'ptr %y', 'i32 %tid', 'i32')}  store i32 %sum, ptr %p\n"
    )
    memory = DeviceMemory()
    result = memory.fresh((32,), np.int32)
    SimtModule(kernel("ptr %y", body)).launch("k", (1,), (32,), [result])
    np.testing.assert_array_equal(result.numpy(), np.where(LANES % 2, LANES[1::2].sum(), LANES[::2].sum()))
