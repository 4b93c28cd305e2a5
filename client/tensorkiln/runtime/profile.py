"""What the items of a program took in one run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from ..errors import RequestError
from ..launch import LaunchDims
from ..whole_file import whole_file
from .steps import CallbackStep, Launch, TransferStep

StepKind = Literal["kernel", "memory_transfer", "host_callback"]


@dataclass(frozen=True, slots=True)
class Span:
    """What one thread of the host, or one stream of a GPU, did of an item: nanoseconds since the run began."""

    lane: int
    start_ns: int
    ns: int


@dataclass(frozen=True, slots=True)
class ItemProfile:
    """Nanoseconds of one item; `launch` is that of a kernel, `threads` how many threads of the host it ran on.

    `estimate_ns` is what the compiler estimated for one of them, `flops` its operations and `bytes` what it reads and
    writes, by the compiler's count; 0 where it has none. `start_ns` counts from the begin of the run, and `spans` are
    the threads or the stream that the item ran on.
    """

    item_id: int
    op: StepKind
    name: str
    ns: int
    launch: LaunchDims | None
    threads: int
    estimate_ns: int = 0
    start_ns: int = 0
    spans: tuple[Span, ...] = ()
    flops: int = 0
    bytes: int = 0


class Profile(tuple[ItemProfile, ...]):
    """The items of one run in order of execution; `title` says of what, `is_gpu` where, `threads` on how many."""

    title: str
    is_gpu: bool
    threads: int

    def __new__(
        cls, items: Iterable[ItemProfile] = (), title: str = "program", *, is_gpu: bool = False, threads: int = 1
    ) -> Profile:
        made = super().__new__(cls, items)
        made.title, made.is_gpu, made.threads = title, is_gpu, threads
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[tuple[ItemProfile, ...], str], dict[str, object]]:
        return (tuple(self), self.title), {"is_gpu": self.is_gpu, "threads": self.threads}

    @property
    def ns(self) -> int:
        """What all items took together."""
        return sum(item.ns for item in self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run as a trace, `.json`, which Perfetto and Chrome show, or its roofline, `.svg`.

        The roofs are what this machine does, measured now; a run on a GPU has none. RequestError for another suffix,
        OSError when it cannot be written.
        """
        content = self.rendered(PurePath(path).suffix)
        with whole_file(path) as file:
            file.write(content)

    def rendered(self, suffix: str) -> bytes:
        """What `save` writes to a file of this suffix."""
        match suffix.lower():
            case ".json":
                from .trace_file import trace_of

                return trace_of(self)
            case ".svg":
                from .machine import measured
                from .roofline import roofline

                return roofline(self, None if self.is_gpu else measured(self.threads)).encode()
            case _:
                raise RequestError(f"a profile is saved as .json, a trace, or as .svg, a roofline, not as {suffix!r}")


def item_profile(
    step: Launch | TransferStep | CallbackStep, ns: int, start_ns: int = 0, spans: tuple[Span, ...] = ()
) -> ItemProfile:
    """The profile of `step`, which took `ns` nanoseconds from `start_ns` on."""
    if isinstance(step, Launch):
        kind: StepKind = "kernel"
        return ItemProfile(step.item_id, kind, step.name, ns, step.launch, step.workers, start_ns=start_ns, spans=spans)
    kind = "host_callback" if isinstance(step, CallbackStep) else "memory_transfer"
    return ItemProfile(step.item_id, kind, step.name, ns, None, 1, start_ns=start_ns, spans=spans)
