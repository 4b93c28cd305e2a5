"""What is said over the broker: digests and names, no bytes of anybody's graph."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from tensorkiln.compiler_build import build

TASK: Final = "kiln.compile"
"""The name of the only Celery task."""
MAX_ATTEMPTS: Final = 5
"""How many workers may be lost over an order, or take it without beginning it."""
_PROTOCOL: Final = 3
"""Changes with what services and workers write for one another, of which those before understand nothing."""


@dataclass(frozen=True, slots=True)
class Message:
    """The announcement of an attempt: whose task it is, the digest of its action, seconds that a compile may take.

    `trace` is the trace context of whoever asked, as the header `traceparent`.
    """

    owner: str
    task: str
    attempt: int
    action: str
    deadline_s: float
    trace: str = ""

    def to_json(self) -> dict[str, Any]:
        """What `Message(**…)` takes."""
        return asdict(self)


def queue_name() -> str:
    """The queue of this generation: workers of another do not get its orders."""
    return f"{TASK}.{generation()}"


def generation() -> str:
    """What services and workers have in common that understand one another: the compiler's build, and the protocol."""
    return f"{build().build_id[:16]}.{_PROTOCOL}"
