"""Which level of isolation works on this machine: a canary, confined as a task is, tries to break out."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from . import confine, frames, landlock, paths, spawn, syscalls
from .canary import Findings
from .cgroups import Cgroups
from .child import Confinement, Task
from .control import Fork, Limits, Ready
from .forked import Forker
from .frames import FrameError, Message
from .landlock import Support
from .levels import Level, Wall
from .scratch import remove

_LIMITS: Final = Limits(deadline_s=10.0, memory_mib=256, file_mib=1)
_PLANTED: Final = "planted"
_QUOTED: Final = 500
_LEFT_OUT: Final = Support(0, "KILN_ISOLATION=process leaves Landlock out")


def choose_confinement(
    scratch: Path, tasks: Mapping[str, Task], wall: Wall, outside: tuple[str, ...]
) -> tuple[Forker, Ready]:
    """A forker with the strongest confinement that works here, and its report; `outside`: the service's namespaces."""
    support = _LEFT_OUT if wall is Wall.PROCESS else landlock.support()
    shortcomings = [support.reason] if support.reason else []
    cgroups = Cgroups.delegated()
    forker = Forker(scratch, tasks, Confinement(support.abi, paths.readable()), cgroups)
    findings = _try_canary(forker, scratch)
    if support.abi and (isinstance(findings, str) or findings.hindered):
        shortcomings.append(f"Landlock is not used, because a task under it {_fault(findings)}")
        forker = Forker(scratch, tasks, Confinement(0, ()), cgroups)
        findings = _try_canary(forker, scratch)
    if isinstance(findings, str) or findings.hindered:
        shortcomings.append(f"a task {_fault(findings)}")
    elif findings.escaped:
        shortcomings.append(f"a task can {', '.join(findings.escaped)}")
    level = Level.PROCESS if shortcomings else Level.LANDLOCK
    if level is Level.LANDLOCK:
        shared = [mine for mine in spawn.namespaces() if mine in outside]
        if wall is not Wall.BWRAP:
            shortcomings.append("the fork server has no wall of its own: KILN_ISOLATION=bwrap gives it one")
        elif shared:
            shortcomings.append(f"the fork server shares {', '.join(shared)} with the service")
        else:
            level = Level.EXTERNAL
    confinement = replace(forker.confinement, level=level)
    forker.confinement = confinement
    baseline_mib = forker.baseline_bytes // confine.MIB
    mechanisms = (
        *("fork", "rlimits", "no_new_privs", "no_capabilities"),
        *(("seccomp",) if syscalls.is_supported() else ()),
        *((f"landlock abi {confinement.landlock_abi}",) if confinement.landlock_abi else ()),
        *((wall.value,) if wall is Wall.BWRAP else ()),
        *(("cgroup",) if cgroups is not None else ()),
    )
    return forker, Ready(baseline_mib, mechanisms, level.value, tuple(shortcomings))


def _fault(findings: Findings | str) -> str:
    return findings if isinstance(findings, str) else f"cannot {', '.join(findings.hindered)}"


def _try_canary(forker: Forker, scratch: Path) -> Findings | str:
    """Fork a canary and return its findings, or how it ended if it sent none."""
    planted = scratch / _PLANTED
    planted.write_bytes(b"planted")
    above = {"file_bytes": (_LIMITS.file_mib << 20) + 1, "memory_bytes": (_LIMITS.memory_mib << 20) + 1}
    ours, theirs = socket.socketpair()
    with ours:
        ours.settimeout(_LIMITS.deadline_s)
        with theirs:
            forked = forker.fork(Fork(-1, "canary", _LIMITS), theirs.fileno())
        try:
            for piece in frames.encode_message(Message({"planted": str(planted), "pid": os.getpid(), **above})):
                ours.sendall(piece)
            findings = Findings(**{name: tuple(found) for name, found in frames.receive_message(ours).header.items()})
        except (OSError, FrameError):
            findings = None
    end = forked.reap()
    remove(forked.scratch)
    planted.unlink(missing_ok=True)
    return findings or f"ends with status {end.status}: {end.stderr[-_QUOTED:].strip()}"
