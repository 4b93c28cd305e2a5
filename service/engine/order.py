"""What an engine is, which compiles; what it is asked for, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from service.action import Action
from service.sandbox.spending import Spending
from service.store.programs import Entry

Progress: TypeAlias = Mapping[str, Any]
"""A step of an order: `stage` is what begins, `attempt` the number of a new attempt."""
OnProgress: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request wants compiled: an action and its canonical graph, with or without the dumps of its stages.

    `renaming` is that of a request which wants nothing else.
    """

    action: Action
    graph: bytes
    with_dumps: bool
    renaming: bytes | None = None


@dataclass(slots=True)
class Cost:
    """What attempts at an order have taken, however they ended: `seconds` of a place to compile at, and of processors.

    Time in a queue is none.
    """

    seconds: float = 0.0
    spending: Spending = field(default_factory=Spending)

    def lose(self, seconds: float) -> None:
        """An attempt was lost, of which nobody can tell what it took: a processor, for so long."""
        self.seconds += seconds
        self.spending.add(seconds)


@dataclass(frozen=True, slots=True)
class Order:
    """Something to compile, and what the answer is to say about the cache.

    `replaces` is whether the caller is to get what is made now, though the store may have an equal program. Whoever
    carries the order out adds to `cost`. `computed` is called when there is nothing more to compute: what was made is
    stored, but not signed yet.
    """

    wanted: Wanted
    cache: Mapping[str, Any] = field(default_factory=dict[str, Any])
    replaces: bool = False
    cost: Cost = field(default_factory=Cost)
    computed: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Rendered:
    """The answer to a request with this renaming, and what the same request gets the next time."""

    renaming: bytes
    answer: bytes
    repeat: bytes


@dataclass(frozen=True, slots=True)
class Made:
    """A program in canonical names, as JSON, and where the store has it, in a signed entry.

    `rendered` is there when the program was made for one request alone, and here; `attempts` is how often it was begun.
    """

    program: bytes
    entry: Entry
    rendered: Rendered | None
    attempts: int = 1


class CompileEngine(Protocol):
    """Takes orders and carries them out. What it makes is stored and signed; equal orders make equal artifacts.

    `LocalEngine` is this machine, `FarmEngine` a farm of workers. Every method raises TensorkilnError alone.
    """

    async def start(self) -> None:
        """Be ready for orders."""

    async def make(self, order: Order, on_progress: OnProgress) -> Made:
        """Carry an order out, whose progress is given to `on_progress`; given up when the caller is cancelled.

        The error that it ended with: CompileError of the compile's own, LostWorkerError when one worker after the other
        was lost over it, UntrustedArtifactError when what workers make is not believed here, UnavailableError when it
        cannot be taken.
        """
        ...

    async def close(self) -> None:
        """Take no more orders, and leave those that there are."""
