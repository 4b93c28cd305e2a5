"""Make every attempt and collect the results."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from .files import FILES, NEEDS, RESOURCES, of_others
from .kernel import KERNEL, NAMESPACES, NETWORK, SHARED, connections
from .processes import PROCESSES
from .victim import Attempt, Attempts, Victim


@dataclass(frozen=True, slots=True)
class Findings:
    """Attempts that succeeded (`escaped`), attempts that were refused, and needs that failed (`hindered`)."""

    escaped: tuple[str, ...]
    refused: tuple[str, ...]
    hindered: tuple[str, ...]


def make_attempts(victim: Victim) -> Findings:
    """Make every attempt, in a process that ends soon after."""
    # Exceeding the file limit must raise an error here, not kill the process.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hindered = tuple(name for name, need in NEEDS.items() if not _succeeds(need, victim))
    outcomes = {name: _succeeds(attempt, victim) for name, attempt in _attempts(victim).items()}
    escaped = tuple(name for name, succeeded in outcomes.items() if succeeded)
    return Findings(escaped, tuple(name for name in outcomes if name not in escaped), hindered)


def _attempts(victim: Victim) -> Attempts:
    others = {**of_others(victim), **connections(victim)}
    return {**FILES, **PROCESSES, **NETWORK, **others, **KERNEL, **SHARED, **RESOURCES, **NAMESPACES}


def _succeeds(attempt: Attempt, victim: Victim) -> bool:
    try:
        attempt(victim)
    except OSError:
        return False
    return True
