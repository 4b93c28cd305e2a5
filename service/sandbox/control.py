"""The protocol between the service and its fork server: JSON datagrams on a SOCK_SEQPACKET pair.

Service to fork server: `Begin` once, then `Fork` (with the task's socket attached) and `Cancel`. Back: `Ready` or
`Unready` once, then for each task `Expired` when its deadline passes, and `Ended`; `Refused` instead when no process
could be made.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

MAX_DATAGRAM: Final = 128 << 10
STDERR_TAIL: Final = 16 << 10
"""Bytes kept from the end of a task's standard error."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one task: wall-clock seconds, MiB of address space beyond the fork server's, MiB per file."""

    deadline_s: float
    memory_mib: int
    file_mib: int


@dataclass(frozen=True, slots=True)
class Begin:
    """Prepare to serve: `scratch` is the directory of all tasks, `wall` the value of the `Wall` that confines them.

    `namespaces` are those of the service. The warm-ups in `later` run when the server is first idle.
    """

    scratch: str
    wall: str
    namespaces: tuple[str, ...]
    gives_way: bool
    later: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fork:
    """Start a task of this kind; its socket travels with the datagram."""

    task: int
    kind: str
    limits: Limits


@dataclass(frozen=True, slots=True)
class Cancel:
    """Kill this task: its caller has left."""

    task: int


@dataclass(frozen=True, slots=True)
class Ready:
    """The fork server has loaded what tasks need, at this `Level`; `shortcomings` say why at no stronger one."""

    baseline_mib: int
    mechanisms: tuple[str, ...]
    level: str = "process"
    shortcomings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unready:
    """The fork server could not load what tasks need, and ends; its standard error has the traceback."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The operating system makes no process for the task."""

    task: int
    reason: str


@dataclass(frozen=True, slots=True)
class Expired:
    """The task was killed because its deadline passed, `ran_s` seconds after it began."""

    task: int
    ran_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ended:
    """The task's process is gone: its wait status, seconds since it began, seconds of CPU, end of its standard error.

    `cancelled`: a `Cancel` arrived while it was alive. `peak_mib` is its maximum resident size, `grown_mib` the part
    that it did not inherit. `ran_out`: the kernel killed it for its memory; None without a cgroup to tell.
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
Report = Ready | Unready | Refused | Expired | Ended

_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Begin, Fork, Cancel, Ready, Unready, Refused, Expired, Ended)
}


def encode(message: Order | Report) -> bytes:
    content = {"is": type(message).__name__}
    content |= {field.name: getattr(message, field.name) for field in fields(message)}
    return json.dumps(content, separators=(",", ":"), default=asdict).encode()


def decode(datagram: bytes) -> Order | Report:
    content = json.loads(datagram)
    kind = _KINDS[content.pop("is")]
    if kind is Fork:
        content["limits"] = Limits(**content["limits"])
    if kind is Begin:
        content |= {name: tuple(content[name]) for name in ("namespaces", "later")}
    if kind is Ready:
        content |= {name: tuple(content[name]) for name in ("mechanisms", "shortcomings")}
    return kind(**{field.name: content[field.name] for field in fields(kind)})
