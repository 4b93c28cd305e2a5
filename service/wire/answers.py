"""Models and values that are in answers and in the records of jobs."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from tensorkiln.spec import CacheInfo
from tensorkiln.target import Target

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


class Components(Answer):
    """What an action digest is made of. `graph` is the digest of the canonical graph, `salt` the digest of the salt."""

    abi: int
    build_id: str
    graph: str
    options: dict[str, Any]
    salt: str
    schema_version: int = Field(alias="schema")
    target: Target


class Difference(Answer):
    """A component in which the request differs from the stored program, with both values.

    If the component is a list, each value has only the entries that the other one lacks.
    """

    component: str
    requested: Any
    stored: Any


class ExplainedAction(Answer):
    """The compile of the graph for one target, named by its action `digest`.

    `stored` says whether its program is in the store, and `cache` is what the compile would answer in this field.
    `differences` are those from the stored program `cache.nearest`. The value of a salt is never shown.
    """

    digest: str
    components: Components
    stored: bool
    cache: CacheInfo
    differences: tuple[Difference, ...] = ()


class Explanation(Answer):
    """One action for each target, in the order of the request."""

    actions: tuple[ExplainedAction, ...]
