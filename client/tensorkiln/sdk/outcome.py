"""The outcome of one graph for one target in a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import TensorkilnError
from ..request import GraphSource
from ..spec import CompiledProgram

LaterGraph: TypeAlias = GraphSource | Callable[[], GraphSource]
"""A graph, or a function that returns it, called when its turn comes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`compiled` or `error`; the other is None.

    `graph` and `target` are positions in the request. `seconds` is the time measured by the client; `queue_ms` and
    `run_ms` are milliseconds measured by the service, None where unknown. `attempt` counts the service's attempts,
    from 1.
    """

    graph: int
    target: int
    compiled: CompiledProgram | None
    error: TensorkilnError | None
    seconds: float
    queue_ms: float | None = None
    run_ms: float | None = None
    attempt: int = 1
