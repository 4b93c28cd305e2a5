"""Advice to the code generator: loop hints and the plan of a reduction."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ..nodes.base import Record
from .memory import MemoryScope


class Vectorize(Record):
    """Run `axis` in vectors of `width` elements."""

    hint: Literal["vectorize"] = "vectorize"
    axis: int
    width: int = Field(ge=1)


class Unroll(Record):
    """Unroll `axis` by `factor`."""

    hint: Literal["unroll"] = "unroll"
    axis: int
    factor: int = Field(ge=1)


class Prefetch(Record):
    """Fetch `var` into a nearer memory, `distance` iterations ahead."""

    hint: Literal["prefetch"] = "prefetch"
    var: int
    into: MemoryScope
    distance: int = Field(ge=0)


class Pipeline(Record):
    """Software-pipeline `axis` in `stages`."""

    hint: Literal["pipeline"] = "pipeline"
    axis: int
    stages: int = Field(ge=1)
    overlap: bool = False


LoopHint = Annotated[Vectorize | Unroll | Prefetch | Pipeline, Field(discriminator="hint")]


class ReductionPlan(Record):
    """How the reduction `axes` (indices into the iteration space) are combined within and across threads."""

    axes: tuple[int, ...]
    intra_thread: Literal["tree", "welford", "shfl", "none"] = "none"
    inter_thread: Literal["shared_tree", "atomic", "grid_reduce"] = "shared_tree"
