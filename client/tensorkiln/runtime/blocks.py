"""Blocks kept warm between calls: fresh pages would cost a call a quarter of its time in page faults."""

from __future__ import annotations

from .memory import Block
from .pool import Pool


class BlockPool(Pool[Block]):
    """Blocks of the host's memory."""

    def __init__(self, *, slack: bool) -> None:
        super().__init__(Block, slack=slack)
