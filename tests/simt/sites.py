"""What a message needs to know about the text of a kernel."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Site:
    """A call or an access: the function around it, with its sigil, and the instruction as LLVM prints it."""

    function: str
    instruction: str
    is_access: bool

    def __str__(self) -> str:
        return f"`{self.instruction.strip()}` in {self.function}"


@dataclass(frozen=True, slots=True)
class Promise:
    """What a function takes for granted about a special register: `low <= value < high`."""

    function: str
    register: str
    low: int
    high: int
