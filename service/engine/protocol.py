"""What an engine is: somewhere that compiles. `LocalEngine` is this machine, `FarmEngine` a farm of workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from .order import Made, Order

News: TypeAlias = Mapping[str, Any]
"""Something that happens to an order: `stage` is what begins, `attempt` the number of a new attempt."""
Tell: TypeAlias = Callable[[News], None]


class CompileEngine(Protocol):
    """Takes orders and carries them out. What it makes is stored and signed; equal orders make equal artifacts.

    Every method raises TensorkilnError alone.
    """

    async def start(self) -> None:
        """Be ready for orders."""
        ...

    def lacks_workers(self) -> str:
        """Why nobody would begin an order now, as far as is known; empty where somebody would."""
        ...

    def width(self, most: int) -> int:
        """How many orders are best given at a time now, of `most` that may be."""
        ...

    async def make(self, order: Order, tell: Tell) -> Made:
        """Carry an order out, whose news go to `tell`; given up when the caller is cancelled.

        The error that it ended with: CompileError of the compile's own, LostWorkerError when one worker after the other
        was lost over it, UntrustedArtifactError when what workers make is not believed here, UnavailableError when it
        cannot be taken.
        """
        ...

    async def close(self) -> None:
        """Take no more orders, and leave those that there are."""
        ...
