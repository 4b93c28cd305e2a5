"""The interface of a back end: orders go in, programs come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from service.action import Action
from service.sandbox.connection import Spending
from service.store.programs import Entry

Progress: TypeAlias = Mapping[str, Any]
"""A step of an order: `stage` is what begins, `attempt` the number of a new attempt."""
OnProgress: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One target of a compile request: an action and its canonical graph; `renaming`, if this is the only target."""

    action: Action
    graph: bytes
    with_dumps: bool
    renaming: bytes | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """A compile that a service gives to a back end, with what the answer says about the cache.

    With `replaces`, the caller gets a newly compiled program even if the store has one. The back end adds to `cost`,
    and may call `computed` before the program is signed.
    """

    wanted: Wanted
    cache: Mapping[str, Any] = field(default_factory=dict[str, Any])
    replaces: bool = False
    cost: Spending = field(default_factory=Spending)
    computed: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Rendered:
    """The answer to a request with this renaming."""

    renaming: bytes
    answer: bytes


@dataclass(frozen=True, slots=True)
class Made:
    """A program in canonical names, as JSON, and its signed entry; `rendered` when compiled here for one request."""

    program: bytes
    entry: Entry
    rendered: Rendered | None


class CompileEngine(Protocol):
    """A back end: carries orders out, and stores and signs the programs. Methods raise only TensorkilnError."""

    async def make(self, order: Order, on_progress: OnProgress) -> Made:
        """Carry an order out and report to `on_progress`. When the caller is cancelled, so is the order.

        CompileError, LostWorkerError (too many workers lost), UntrustedArtifactError (of the workers' programs), or
        UnavailableError when it cannot be carried out now.
        """
        ...

    async def close(self) -> None:
        """Stop accepting orders. Orders that workers have are left to them."""
