"""Barriers of a block, with and without a reduction of a predicate, and fences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .stub import Addresses, Stub, called

_REDUCTIONS: Final = {"and": (1, "i1"), "or": (2, "i1"), "popc": (3, "i32")}


def _wait(count: str) -> Callable[[Addresses], str]:
    def body(addresses: Addresses) -> str:
        wait = called(addresses("simt_barrier"), "i32", f"i32 %site, i32 0, i32 %a0, i32 {count}, i32 0")
        return f"  %r = {wait}\n  ret void"

    return body


def _reduce(operation: int, result: str, count: str, predicate: str) -> Callable[[Addresses], str]:
    def body(addresses: Addresses) -> str:
        arguments = f"i32 %site, i32 {operation}, i32 %a0, i32 {count}, i32 %value"
        wait = called(addresses("simt_barrier"), "i32", arguments)
        narrow = "  %n = trunc i32 %r to i1\n  ret i1 %n" if result == "i1" else "  ret i32 %r"
        return f"  %value = zext i1 {predicate} to i32\n  %r = {wait}\n{narrow}"

    return body


def _barriers(aligned: str) -> tuple[Stub, ...]:
    return (
        Stub(f"barrier.cta.sync.{aligned}all", "void", ("i32",), _wait("0"), True, True),
        Stub(f"barrier.cta.sync.{aligned}count", "void", ("i32", "i32"), _wait("%a1"), True, True),
        *(
            Stub(
                f"barrier.cta.red.{name}.{aligned}all",
                result,
                ("i32", "i1"),
                _reduce(operation, result, "0", "%a1"),
                True,
                True,
            )
            for name, (operation, result) in _REDUCTIONS.items()
        ),
        *(
            Stub(
                f"barrier.cta.red.{name}.{aligned}count",
                result,
                ("i32", "i32", "i1"),
                _reduce(operation, result, "%a1", "%a2"),
                True,
                True,
            )
            for name, (operation, result) in _REDUCTIONS.items()
        ),
    )


BARRIERS: Final = (
    *_barriers("aligned."),
    *_barriers(""),
    # All threads are one thread of the host, so its memory is in order as it is.
    *(Stub(f"membar.{scope}", "void", (), lambda _: "  ret void") for scope in ("cta", "gl", "sys")),
)
