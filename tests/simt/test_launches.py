"""What is refused before a launch, with the limit and the value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from . import DeviceMemory, LaunchRefused, SimtModule
from .kernels import TID, element, kernel, reverse

PLAIN = kernel("ptr %y", f"{TID}{element('%p', 'ptr %y', 'i32 %tid', 'i32')}  store i32 %tid, ptr %p\n")


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        ((0,), (32,), r"grid x is 0; it must be from 1 to 2147483647"),
        ((1, 65_536), (32,), r"grid y is 65536; it must be from 1 to 65535"),
        ((1,), (1, 1, 65), r"block z is 65; it must be from 1 to 64"),
        ((1,), (1025,), r"block x is 1025; it must be from 1 to 1024"),
        ((1,), (64, 32), r"a block has 2048 threads; the limit is 1024"),
        ((2**31 - 1, 2), (32,), r"4294967294 blocks; the emulator runs at most 2147483648"),
        ((1, 1, 1, 1), (32,), r"grid x is 0"),
    ],
)
def test_a_geometry_beyond_the_limits_is_refused(grid: Sequence[int], block: Sequence[int], message: str) -> None:
    with pytest.raises(LaunchRefused, match=message):
        SimtModule(PLAIN).launch("k", grid, block, [0])


def test_an_unknown_kernel_and_a_wrong_number_of_arguments_are_refused() -> None:
    module = SimtModule(PLAIN)
    with pytest.raises(LaunchRefused, match="no kernel j; it has k"):
        module.launch("j", (1,), (1,), [])
    with pytest.raises(LaunchRefused, match="k takes 1 arguments, got 2"):
        module.launch("k", (1,), (1,), [0, 0])


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("i32", 2**32, r"argument 0 is 4294967296, which does not fit in i32"),
        ("i64", 1.5, r"argument 0 is 1\.5; the kernel takes i64"),
        ("ptr align 16", 8, r"argument 0 is 0x8; the kernel wants an address aligned to 16"),
        ("ptr", -1, r"argument 0 is -0x1; the kernel wants an address"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_refused(kind: str, value: float, message: str) -> None:
    with pytest.raises(LaunchRefused, match=message):
        SimtModule(kernel(f"{kind} %a", "")).launch("k", (1,), (1,), [value])


@pytest.mark.parametrize("value", [0, 1, -1, 2**63 - 1, -(2**63), 2**64 - 1])
def test_a_64_bit_number_arrives_as_it_is(value: int) -> None:
    memory = DeviceMemory()
    result = memory.fresh((1,), np.uint64)
    SimtModule(kernel("ptr %y, i64 %n", "  store i64 %n, ptr %y\n")).launch("k", (1,), (1,), [result, value])
    assert int(result.numpy()[0]) == value % 2**64


def test_floating_point_numbers_are_passed_in_their_own_width() -> None:
    memory = DeviceMemory()
    result = memory.fresh((2,), np.float64)
    body = (
        "  %w = fpext float %a to double\n  store double %w, ptr %y\n"
        f"{element('%p', 'ptr %y', 'i64 1', 'double')}  store double %b, ptr %p\n"
    )
    SimtModule(kernel("ptr %y, float %a, double %b", body)).launch("k", (1,), (1,), [result, 0.1, 0.1])
    np.testing.assert_array_equal(result.numpy(), [np.float64(np.float32(0.1)), 0.1])


def _with_attribute(attribute: str) -> str:
    return PLAIN.replace("{\n", f"{attribute} {{\n", 1)


@pytest.mark.parametrize(
    ("text", "grid", "block", "message"),
    [
        (_with_attribute('"nvvm.maxntid"="128,1,1"'), (1,), (129,), r"a block has 129 threads; maxntid is 128"),
        (_with_attribute('"nvvm.reqntid"="64,2"'), (1,), (128,), r"the block is \(128, 1, 1\); reqntid is \(64, 2\)"),
        (PLAIN.replace("call i32", "call range(i32 0, 64) i32"), (1,), (65,), r"for 0 <= tid.x < 64; .* has 0 to 64"),
        (
            PLAIN.replace("call i32", "call range(i32 2, 9) i32").replace("tid.x", "nctaid.y"),
            (1,),
            (1,),
            r"for 2 <= nctaid.y < 9; this launch has 1 to 1",
        ),
    ],
)
def test_a_launch_that_breaks_what_the_kernel_was_compiled_for_is_refused(
    text: str, grid: Sequence[int], block: Sequence[int], message: str
) -> None:
    with pytest.raises(LaunchRefused, match=message):
        SimtModule(text).launch("k", grid, block, [0])


def test_a_launch_that_keeps_the_kernels_promises_runs() -> None:
    memory = DeviceMemory()
    result = memory.fresh((128,), np.int32)
    text = _with_attribute('"nvvm.reqntid"="128,1,1"').replace("call i32", "call range(i32 0, 128) i32")
    SimtModule(text).launch("k", (1,), (128,), [result])
    np.testing.assert_array_equal(result.numpy(), np.arange(128))


@pytest.mark.parametrize(
    ("dynamic", "message"),
    [(-1, r"0 static and -1 dynamic bytes"), (232_449, r"0 static and 232449 dynamic bytes .* from 0 to 232448")],
)
def test_shared_memory_beyond_the_limit_is_refused(dynamic: int, message: str) -> None:
    with pytest.raises(LaunchRefused, match=message):
        SimtModule(reverse()).launch("k", (1,), (32,), [0, 0], dynamic_shared_bytes=dynamic)


def test_static_shared_memory_of_more_than_48_kib_is_refused() -> None:
    text = kernel(
        "",
        "  store i8 0, ptr addrspace(3) @a\n  store i8 0, ptr addrspace(3) @b\n",
        globals_=[f"@{name} = internal addrspace(3) global [24577 x i8] undef, align 16" for name in "ab"],
    )
    module = SimtModule(text)
    assert module.entries["k"].static_shared_bytes == 24592 + 24577
    with pytest.raises(LaunchRefused, match=r"49169 bytes of static shared memory; the limit is 49152"):
        module.launch("k", (1,), (1,), [])


def test_a_kernel_counts_only_the_shared_memory_that_it_uses() -> None:
    arrays = [f"@{name} = internal addrspace(3) global [40000 x i8] undef" for name in "ab"]
    helper = "define internal void @h() {\n  store i8 0, ptr addrspace(3) @b\n  ret void\n}"
    text = kernel("", "  store i8 0, ptr addrspace(3) @a\n", globals_=arrays)
    text += kernel("", "  call void @h()\n", name="j", globals_=[helper])
    module = SimtModule(text)
    assert [module.entries[name].static_shared_bytes for name in "kj"] == [40000, 40000]
    for name in "kj":
        module.launch(name, (1,), (1,), [])
