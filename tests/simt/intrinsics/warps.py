"""Collectives of a warp: shuffles, votes, reductions of integers, and the warp's barrier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .stub import Addresses, Stub, called

_SHUFFLES: Final = {"idx": 1, "up": 2, "down": 3, "bfly": 4}
_VOTES: Final = {"all": 5, "any": 6, "uni": 7, "ballot": 8}
_REDUCTIONS: Final = {"add": 9, "min": 10, "max": 11, "umin": 12, "umax": 13, "and": 14, "or": 15, "xor": 16}


def _collective(addresses: Addresses, operation: int, mask: str, value: str, lane: str = "0", clamp: str = "0") -> str:
    arguments = f"i32 %site, i32 {operation}, i32 {mask}, i32 {value}, i32 {lane}, i32 {clamp}"
    call = called(addresses("simt_collective"), "i64", arguments)
    return f"  %packed = {call}\n  %word = trunc i64 %packed to i32\n"


def _shuffle(operation: int, kind: str, with_predicate: bool) -> Callable[[Addresses], str]:
    def body(addresses: Addresses) -> str:
        moved = f"  %in = bitcast {kind} %a1 to i32\n{_collective(addresses, operation, '%a0', '%in', '%a2', '%a3')}"
        moved += f"  %out = bitcast i32 %word to {kind}\n"
        if not with_predicate:
            return f"{moved}  ret {kind} %out"
        return (
            f"{moved}  %high = lshr i64 %packed, 32\n  %valid = trunc i64 %high to i1\n"
            f"  %first = insertvalue {{ {kind}, i1 }} poison, {kind} %out, 0\n"
            f"  %both = insertvalue {{ {kind}, i1 }} %first, i1 %valid, 1\n  ret {{ {kind}, i1 }} %both"
        )

    return body


def _vote(operation: int, result: str) -> Callable[[Addresses], str]:
    def body(addresses: Addresses) -> str:
        counted = f"  %in = zext i1 %a1 to i32\n{_collective(addresses, operation, '%a0', '%in')}"
        return (
            f"{counted}  %bit = trunc i32 %word to i1\n  ret i1 %bit" if result == "i1" else f"{counted}  ret i32 %word"
        )

    return body


def _reduce(operation: int) -> Callable[[Addresses], str]:
    return lambda addresses: f"{_collective(addresses, operation, '%a1', '%a0')}  ret i32 %word"


def _wait(addresses: Addresses) -> str:
    return f"{_collective(addresses, 0, '%a0', '0')}  ret void"


def _shuffles(name: str, operation: int, suffix: str, kind: str) -> tuple[Stub, ...]:
    parameters = ("i32", kind, "i32", "i32")
    plain, pair = f"shfl.sync.{name}.{suffix}", f"{{ {kind}, i1 }}"
    return (
        Stub(plain, kind, parameters, _shuffle(operation, kind, False), True, True),
        Stub(f"{plain}p", pair, parameters, _shuffle(operation, kind, True), True, True),
    )


WARPS: Final = (
    *(
        stub
        for name, operation in _SHUFFLES.items()
        for suffix, kind in (("i32", "i32"), ("f32", "float"))
        for stub in _shuffles(name, operation, suffix, kind)
    ),
    *(
        Stub(f"vote.{name}.sync", result, ("i32", "i1"), _vote(operation, result), True, True)
        for name, operation in _VOTES.items()
        for result in ("i32" if name == "ballot" else "i1",)
    ),
    *(
        Stub(f"redux.sync.{name}", "i32", ("i32", "i32"), _reduce(operation), True, True)
        for name, operation in _REDUCTIONS.items()
    ),
    Stub("bar.warp.sync", "void", ("i32",), _wait, True, True),
)
