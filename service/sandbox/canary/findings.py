"""Every attempt, and what came of it."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from .files import FILES, of_others
from .kernel import KERNEL, NAMESPACES
from .needs import NEEDS
from .network import NETWORK, connections
from .prey import Attempt, Attempts, Prey
from .processes import PROCESSES
from .resources import RESOURCES
from .shared import SHARED


@dataclass(frozen=True, slots=True)
class Findings:
    """What a canary could do that it must not, what was refused to it, and what it needs and could not do."""

    escaped: tuple[str, ...]
    refused: tuple[str, ...]
    hindered: tuple[str, ...]


def make_attempts(prey: Prey) -> Findings:
    """Make every attempt, in a process that ends soon after."""
    # A file that grows too large is to be an error here, not the end.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hindered = tuple(name for name, need in NEEDS.items() if not _succeeds(need, prey))
    outcomes = {name: _succeeds(attempt, prey) for name, attempt in _attempts(prey).items()}
    escaped = tuple(name for name, succeeded in outcomes.items() if succeeded)
    return Findings(escaped, tuple(name for name in outcomes if name not in escaped), hindered)


def _attempts(prey: Prey) -> Attempts:
    others = {**of_others(prey), **connections(prey)}
    return {**FILES, **PROCESSES, **NETWORK, **others, **KERNEL, **SHARED, **RESOURCES, **NAMESPACES}


def _succeeds(attempt: Attempt, prey: Prey) -> bool:
    try:
        attempt(prey)
    except OSError:
        return False
    return True
