"""Advice to the code generator: loop hints and the plan of a reduction."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ..nodes.base import Record
from .memory import MemoryScope

ScalarReason = Literal["ordered", "guarded", "single-point"]


class Vectorize(Record):
    """Run `axis` in vectors of `width` elements.

    If `masked`, the end of the axis and conditions on it are masks of these vectors; else points beyond the last whole
    vector run one by one.
    """

    hint: Literal["vectorize"] = "vectorize"
    axis: int
    width: int = Field(ge=1)
    masked: bool = False


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


class Scalar(Record):
    """Run `axis` point by point, not in vectors.

    `ordered`: two points may write the same place, and the last one wins. `guarded`: what a point reads depends on
    conditions on the axis. `single-point`: a turn of the axis computes one element, and neighbouring ones are turns.
    """

    hint: Literal["scalar"] = "scalar"
    axis: int
    reason: ScalarReason


LoopHint = Annotated[Vectorize | Scalar | Unroll | Prefetch | Pipeline, Field(discriminator="hint")]


class ReductionPlan(Record):
    """How the reduction `axes` (indices into the iteration space) are combined within and across threads."""

    axes: tuple[int, ...]
    intra_thread: Literal["tree", "welford", "shfl", "none"] = "none"
    inter_thread: Literal["shared_tree", "atomic", "grid_reduce"] = "shared_tree"
