"""The runtime's report about a launch that stopped, in words."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from .errors import (
    DivergentBarrier,
    DivergentCollective,
    KernelFault,
    Misaligned,
    OutOfBounds,
    Race,
    ReadOnlyWritten,
    UndefinedShuffle,
)
from .launch import Geometry
from .native import Report, Thread
from .sites import Site
from .spans import Span

_AT_BARRIER: Final = 1
_IN_COLLECTIVE: Final = 2
_EXITED: Final = 3
_NAMED: Final = 8
_LANES: Final = 32


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that a message can be made of."""

    kernel: str
    geometry: Geometry
    sites: tuple[Site, ...]
    report: Report
    threads: ctypes.Array[Thread]
    landmarks: Sequence[Span]

    def fault(self) -> KernelFault:
        """The error to raise."""
        return _FAULTS[self.report.code](self)

    @property
    def block(self) -> str:
        """Where it happened."""
        return f"{self.kernel}, block {self.geometry.block_at(self.report.block)}"

    @property
    def site(self) -> str:
        """The call or access that the report is about."""
        return str(self.sites[self.report.site])

    def thread(self, linear: int) -> str:
        """A thread by its indices."""
        return f"thread {self.geometry.thread_at(linear)}"

    def several(self, linear: Sequence[int]) -> str:
        """Threads by their linear numbers, the first few of many."""
        shown = ", ".join(str(number) for number in linear[:_NAMED])
        return f"{len(linear)} threads ({shown}{', …' if len(linear) > _NAMED else ''})"

    @property
    def address(self) -> str:
        """The address that the report is about, seen from the nearest thing with a name."""
        address = self.report.address
        nearest = min(self.landmarks, key=lambda span: span.distance(address), default=None)
        return f"{nearest.name} {address - nearest.address:+}" if nearest else f"{address:#x}"

    def anywhere(self, number: int) -> str:
        """A thread by its number through all blocks."""
        block, linear = divmod(number, self.geometry.threads)
        return f"{self.thread(linear)} of block {self.geometry.block_at(block)}"


def _stuck(found: Diagnosis) -> KernelFault:
    states = [found.threads[number].status for number in range(found.geometry.threads)]
    waiting = [number for number, state in enumerate(states) if state == _AT_BARRIER]
    warps = [number for number, state in enumerate(states) if state == _IN_COLLECTIVE]
    exited = [number for number, state in enumerate(states) if state == _EXITED]
    told = [
        f"{found.several(waiting)} wait at {found.sites[found.threads[waiting[0]].site]}" if waiting else "",
        f"{found.several(warps)} wait in {found.sites[found.threads[warps[0]].site]}" if warps else "",
        f"{found.several(exited)} have exited" if exited else "",
    ]
    text = f"{found.block}: nothing can go on: {'; '.join(part for part in told if part)}"
    return DivergentCollective(text) if warps else DivergentBarrier(text)


def _shared_border(found: Diagnosis) -> KernelFault:
    size = found.report.size
    return OutOfBounds(f"{found.block}: bytes beside the shared array of {size} bytes at {found.address} were written")


def _barrier(found: Diagnosis) -> KernelFault:
    other = found.threads[found.report.other]
    return DivergentBarrier(
        f"{found.block}: {found.thread(found.report.address)} waits at {found.site} and "
        f"{found.thread(found.report.other)} at {found.sites[other.site]}, which is another call of the same barrier"
    )


def _stranger(found: Diagnosis) -> KernelFault:
    return DivergentCollective(
        f"{_who(found)} is lane {found.report.thread % _LANES}, "
        f"which the mask {found.report.address:#010x} of its own call {found.site} does not name"
    )


def _absent(found: Diagnosis) -> KernelFault:
    return DivergentCollective(
        f"{found.block}: {found.thread(found.report.other)} waits in {found.site} for the lanes of mask "
        f"{found.report.address:#010x}, and those of {found.report.size:#010x} have exited or are not in the block"
    )


def _collective(found: Diagnosis) -> KernelFault:
    other = found.threads[found.report.other]
    return DivergentCollective(
        f"{found.block}: lanes of mask {found.report.address:#010x} are in different calls, {found.site} and, "
        f"{found.thread(found.report.other)}, {found.sites[other.site]}"
    )


def _shuffle(found: Diagnosis) -> KernelFault:
    return UndefinedShuffle(
        f"{found.block}: {found.thread(found.report.other)} reads lane {found.report.address} in {found.site}, "
        f"which only the lanes of {found.report.size:#010x} take part in"
    )


def _misaligned(found: Diagnosis) -> KernelFault:
    return Misaligned(
        f"{_who(found)}: {found.site} wants a multiple of {found.report.size}, and {found.address} is "
        f"{found.report.address:#x}"
    )


def _outside(found: Diagnosis) -> KernelFault:
    return OutOfBounds(
        f"{_who(found)}: {found.report.size} bytes at {found.address} are in nothing that the launch may touch: "
        f"{found.site}"
    )


def _read_only(found: Diagnosis) -> KernelFault:
    return ReadOnlyWritten(f"{_who(found)}: {found.site} writes to {found.address}, which is read-only")


def _race(first: str, second: str) -> Callable[[Diagnosis], KernelFault]:
    def fault(found: Diagnosis) -> KernelFault:
        return Race(
            f"{_who(found)} {second} {found.address} by {found.site}, "
            f"which {found.anywhere(found.report.other)} {first} with no barrier between them"
        )

    return fault


def _who(found: Diagnosis) -> str:
    return f"{found.block}, {found.thread(found.report.thread)}"


_FAULTS: Final[dict[int, Callable[[Diagnosis], KernelFault]]] = {
    1: _stuck,
    2: _shared_border,
    3: _barrier,
    4: _stranger,
    5: _absent,
    6: _collective,
    7: _shuffle,
    8: _misaligned,
    9: _outside,
    10: _read_only,
    11: _race("wrote", "reads"),
    12: _race("wrote", "writes"),
    13: _race("read", "writes"),
}
"""By the codes that the files in `runtime` report."""
