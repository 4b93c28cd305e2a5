"""The profile of one run, item by item, and the files that it is saved as."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import PurePath

from ..errors import RequestError
from ..whole_file import whole_file
from .item_profile import ItemProfile
from .machine import Machine, measured
from .roofline import roofline
from .trace_file import trace_of


class Profile(tuple[ItemProfile, ...]):
    """The items of one run in order of execution; `title` names the program, `threads` is the number of threads.

    `peak` is that of the GPU that ran them, None on the host and where its driver does not say.
    """

    title: str
    is_gpu: bool
    threads: int
    peak: Machine | None

    def __new__(
        cls,
        items: Iterable[ItemProfile] = (),
        title: str = "program",
        *,
        is_gpu: bool = False,
        threads: int = 1,
        peak: Machine | None = None,
    ) -> Profile:
        made = super().__new__(cls, items)
        made.title, made.is_gpu, made.threads, made.peak = title, is_gpu, threads, peak
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[tuple[ItemProfile, ...], str], dict[str, object]]:
        return (tuple(self), self.title), {"is_gpu": self.is_gpu, "threads": self.threads, "peak": self.peak}

    @property
    def ns(self) -> int:
        """The time of all items together, in nanoseconds."""
        return sum(item.ns for item in self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run as a trace for Perfetto and Chrome (`.json`) or as a roofline (`.svg`).

        The roofs are the peak of this machine, measured now, or that of the GPU, by its clocks. RequestError for
        another suffix, OSError when the file cannot be written.
        """
        content = self.rendered(PurePath(path).suffix)
        with whole_file(path) as file:
            file.write(content)

    def rendered(self, suffix: str) -> bytes:
        """The content that `save` writes to a file of this suffix."""
        match suffix.lower():
            case ".json":
                return trace_of(self.title, self, is_gpu=self.is_gpu)
            case ".svg":
                return roofline(self.title, self, self.peak if self.is_gpu else measured(self.threads)).encode()
            case _:
                raise RequestError(f"a profile is saved as .json, a trace, or as .svg, a roofline, not as {suffix!r}")
