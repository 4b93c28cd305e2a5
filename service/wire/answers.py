"""Models and values that are in answers and in the records of jobs."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from tensorkiln.spec import CacheInfo

SAME_REQUEST: Final = CacheInfo(status="hit", reason="same request")
SAME_ACTION: Final = CacheInfo(status="hit", reason="same action")


class Answer(BaseModel):
    """A body of an answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Phase(Answer):
    """A stage of a compile that began.

    `target` is the position of its target in the request, null for a stage that is for all targets. `attempt` is the
    number of the attempt if the compile was begun more than once, and null otherwise.
    """

    stage: str
    target: int | None = None
    attempt: int | None = None


class Problem(BaseModel):
    """An error, as RFC 9457 has it. `code` is stable; `pointers` are JSON Pointers into the graph or the request."""

    model_config = ConfigDict(frozen=True)

    type: str
    title: str
    status: int
    detail: str
    code: str
    retryable: bool
    pointers: tuple[str, ...] = ()
    details: dict[str, Any] = Field(default_factory=dict)
