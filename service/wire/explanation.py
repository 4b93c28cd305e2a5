"""The answer to POST /explain."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from tensorkiln.spec import CacheInfo
from tensorkiln.target import Target

from .answers import Answer


class Components(Answer):
    """What an action digest is made of. `graph` is the digest of the canonical graph, `salt` that of the salt."""

    abi: int
    build_id: str
    graph: str
    options: dict[str, Any]
    salt: str
    schema_version: int = Field(alias="schema")
    target: Target


class Difference(Answer):
    """A component with two values; of two lists, what only one of them has."""

    component: str
    requested: Any
    stored: Any


class ExplainedAction(Answer):
    """One action. `cache` is what a compile would say; `differences` are those from `cache.nearest`, with values.

    Of a salt that differs no value is told.
    """

    digest: str
    components: Components
    stored: bool
    cache: CacheInfo
    differences: tuple[Difference, ...] = ()


class Explanation(Answer):
    """One action for each target, in the order of the request."""

    actions: tuple[ExplainedAction, ...]
