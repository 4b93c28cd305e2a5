"""What came of one graph and one target among many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import TensorkilnError
from ..request import GraphSource
from ..spec import CompiledProgram

LaterGraph: TypeAlias = GraphSource | Callable[[], GraphSource]
"""A graph, or a function that gives it when its turn comes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`compiled` or `error`, one of which is None.

    `graph` and `target` are positions among those that were asked for. `seconds` is the time that it took the client,
    `queue_ms` and `run_ms` what it took the service, None where that is not known. `attempt` counts how often the
    service has taken the work up.
    """

    graph: int
    target: int
    compiled: CompiledProgram | None
    error: TensorkilnError | None
    seconds: float
    queue_ms: float | None = None
    run_ms: float | None = None
    attempt: int = 1
