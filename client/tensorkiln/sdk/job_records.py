"""The records of a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

State: TypeAlias = Literal["queued", "running", "done", "failed", "cancelled"]


JobId: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""Job ids need no escaping in a URL."""


class JobStatus(BaseModel):
    """How a job stands. `attempt` counts how often its work was taken up; `error` is a problem (RFC 9457)."""

    model_config = ConfigDict(frozen=True)

    id: JobId
    state: State
    attempt: int = 1
    queue_ms: float | None = None
    run_ms: float | None = None
    error: dict[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something that has happened to a job: `kind` is `queued`, `started`, `stage` or `done`."""

    id: str
    kind: str
    data: Mapping[str, Any]

    @property
    def stage(self) -> str | None:
        """The compile stage that has started; None for other kinds."""
        return self.data.get("stage")

    @property
    def target(self) -> int | None:
        """The position of the target that the stage is for; None while the request is read."""
        return self.data.get("target")


Progress: TypeAlias = Callable[[JobEvent], None]
"""A function that is called with each event of a job."""
