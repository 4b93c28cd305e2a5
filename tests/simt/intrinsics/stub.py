"""A function of the host in the place of an intrinsic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Addresses = Callable[[str], int]
"""The address of a function or variable of the runtime."""


@dataclass(frozen=True, slots=True)
class Stub:
    """`body` is LLVM IR over `%a0`, `%a1`, …; with `takes_site`, `%site` comes before them.

    `suspends` tells whether the calling thread may have to wait for others.
    """

    intrinsic: str
    result: str
    parameters: tuple[str, ...]
    body: Callable[[Addresses], str]
    takes_site: bool = False
    suspends: bool = False
    declarations: tuple[str, ...] = ()

    @property
    def symbol(self) -> str:
        """The name of the host's function, with its sigil."""
        return f"@simt.{self.intrinsic}"

    def definition(self, addresses: Addresses) -> str:
        """The function in LLVM IR."""
        site = ["i32 %site"] if self.takes_site else []
        parameters = ", ".join([*site, *(f"{kind} %a{index}" for index, kind in enumerate(self.parameters))])
        # A call that waits for other threads must stay where it is: no pass may duplicate it or move it to a branch.
        attributes = "convergent alwaysinline" if self.suspends else "alwaysinline"
        return f"define internal {self.result} {self.symbol}({parameters}) {attributes} {{\n{self.body(addresses)}\n}}"


def pointer(address: int) -> str:
    """An operand that is this address."""
    return f"ptr inttoptr (i64 {address} to ptr)"


def called(address: int, result: str, arguments: str) -> str:
    """A call of the function at the address; it is convergent as far as LLVM can tell."""
    return f"call {result} inttoptr (i64 {address} to ptr)({arguments}) convergent"
