"""The protocol between the service and its fork server: JSON datagrams on a SOCK_SEQPACKET pair.

Service to fork server: `Begin` once, then `Fork` (with the task's socket attached) and `Cancel`. Back: `Ready` or
`Unready` once, then for each task `Ended`, or `Refused` when no process could be made.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.json import Decoder, Encoder

MAX_DATAGRAM: Final = 128 << 10
STDERR_TAIL: Final = 16 << 10
"""Bytes kept from the end of a task's standard error."""


class Limits(Struct, frozen=True):
    """Limits of one task: wall-clock seconds, MiB of address space beyond the fork server's, MiB per file."""

    deadline_s: float
    memory_mib: int
    file_mib: int


class Begin(Struct, frozen=True, tag=True):
    """Prepare to serve: `scratch` is the directory of all tasks, `wall` the value of the `Wall` that confines them.

    `namespaces` are those of the service. The warm-ups in `later` run when the server is first idle.
    """

    scratch: str
    wall: str
    namespaces: tuple[str, ...]
    gives_way: bool
    later: tuple[str, ...] = ()


class Fork(Struct, frozen=True, tag=True):
    """Start a task of this kind; its socket travels with the datagram."""

    task: int
    kind: str
    limits: Limits


class Cancel(Struct, frozen=True, tag=True):
    """Kill this task: its caller has left."""

    task: int


class Ready(Struct, frozen=True, tag=True):
    """The fork server has loaded what tasks need, at this `Level`; `shortcomings` say why at no stronger one."""

    baseline_mib: int
    mechanisms: tuple[str, ...]
    level: str = "process"
    shortcomings: tuple[str, ...] = ()


class Unready(Struct, frozen=True, tag=True):
    """The fork server could not load what tasks need, and ends; its standard error has the traceback."""

    reason: str


class Refused(Struct, frozen=True, tag=True):
    """The operating system makes no process for the task."""

    task: int
    reason: str


class Ended(Struct, frozen=True, tag=True):
    """The task's process is gone: its wait status, seconds since it began, seconds of CPU, end of its standard error.

    `expired`: its deadline passed. `cancelled`: a `Cancel` arrived while it was alive. `peak_mib` is its maximum
    resident size, `grown_mib` the part that it did not inherit. `ran_out`: the kernel killed it for its memory; None
    without a cgroup to tell.
    """

    task: int
    status: int
    expired: bool
    peak_mib: int
    grown_mib: int
    cpu_s: float
    stderr: str
    ran_s: float = 0.0
    cancelled: bool = False
    ran_out: bool | None = None


Order = Begin | Fork | Cancel
Report = Ready | Unready | Refused | Ended

encode = Encoder().encode
decode = Decoder(Order | Report).decode
