"""The answer to POST /explain."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from tensorkiln.spec import CacheInfo
from tensorkiln.target import Target

from .answers import Answer


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
