"""Special registers: what a thread knows about its place in the launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .stub import Addresses, Stub, pointer

POSITIONS: Final = {
    f"read.ptx.sreg.{group}.{axis}": 3 * row + column
    for row, group in enumerate(("tid", "ctaid", "ntid", "nctaid"))
    for column, axis in enumerate("xyz")
}
"""Where the runtime keeps each register: its place in `@registers` of state.ll."""

_THREAD: Final = 12
_LANES: Final = 32


def _load(position: int) -> Callable[[Addresses], str]:
    def body(addresses: Addresses) -> str:
        return f"  %r = load i32, {pointer(addresses('registers') + 4 * position)}\n  ret i32 %r"

    return body


def _lane(addresses: Addresses) -> str:
    thread = pointer(addresses("registers") + 4 * _THREAD)
    return f"  %t = load i32, {thread}\n  %r = and i32 %t, {_LANES - 1}\n  ret i32 %r"


def _own_lane_only(addresses: Addresses) -> str:
    # Which lanes run together is up to the GPU, so the least that a kernel may count on is itself.
    thread = pointer(addresses("registers") + 4 * _THREAD)
    return f"  %t = load i32, {thread}\n  %l = and i32 %t, {_LANES - 1}\n  %r = shl i32 1, %l\n  ret i32 %r"


REGISTERS: Final = (
    *(Stub(name, "i32", (), _load(position)) for name, position in POSITIONS.items()),
    Stub("read.ptx.sreg.laneid", "i32", (), _lane),
    Stub("read.ptx.sreg.warpsize", "i32", (), lambda _: f"  ret i32 {_LANES}"),
    Stub("activemask", "i32", (), _own_lane_only),
)
