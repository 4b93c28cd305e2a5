"""Memory that a message can name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """`size` bytes at an address."""

    name: str
    address: int
    size: int

    def distance(self, address: int) -> int:
        """How many bytes the address is outside; 0 inside and just behind the end."""
        return max(self.address - address, address - (self.address + self.size), 0)
