"""The whole schedule: items, their dependencies and their estimates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator

from ..nodes.base import Record
from ..sizes import WireSize
from .items import ItemAnalysis, ScheduleItem
from .operations import Operation, OpRef
from .order import (
    compute_dependents,
    estimate_peak_memory,
    find_critical_path,
    sum_estimated_runtime_ns,
    topological_order,
)


class Dependency(Record):
    """Item `dep_to` must follow item `dep_from`; `dep_vars` are the values that make the edge."""

    dep_from: int
    dep_to: int
    dep_vars: tuple[int, ...] = ()
    kind: Literal["data", "control"] = "data"


BarrierReason = Literal[
    "fusion-off",
    "whole-buffers",
    "prepared",
    "contraction",
    "other-loops",
    "beyond-row",
    "row-size",
    "later-kernel",
    "kernel-size",
]
"""Why a reader is not fused into the kernel that computes its operand (the writer).

`fusion-off`: the options disable fusion. `whole-buffers`: one of the two reads or writes whole buffers, as a scatter
does. `prepared`: one runs when parameters are bound, the other at each call. `contraction`: a contraction starts a
kernel. `other-loops`: only a reader with the same loops is fused into a contraction. `beyond-row`: the reader reads
more than its own row of the writer's result. `row-size`: row by row, the fused work would be too large or too small.
`later-kernel`: the reader also reads a later kernel and is placed with or after that. `kernel-size`: the kernel has
the most results or operands allowed.
"""


class FusionBarrier(Record):
    """Why two kernels were not fused: node `reader` reads what `writer` computes, and `reason` prevented it."""

    reason: BarrierReason
    writer: OpRef
    reader: OpRef


class FusionOpportunity(Record):
    """Two kernel items that could be one; `memory_saved` in bytes. Advisory.

    `barrier` is what the compiler decided, None where it did not decide on these two.
    """

    kernel_a: int
    kernel_b: int
    fusion_type: Literal["elementwise", "reduction", "mixed"]
    benefit_score: float
    memory_saved: WireSize = 0
    barrier: FusionBarrier | None = Field(default=None, exclude_if=lambda barrier: barrier is None)


class Schedule(Record):
    """Items in order of id with their dependencies; `analysis` is empty or has one entry per item, in order.

    `total_memory_usage` is an approximate peak in bytes, `estimated_runtime_ns` the sum over the critical path.
    """

    items: tuple[ScheduleItem, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    fusion_opportunities: tuple[FusionOpportunity, ...] = ()
    analysis: tuple[ItemAnalysis, ...] = ()
    critical_path: tuple[int, ...] = ()
    total_memory_usage: WireSize = 0
    estimated_runtime_ns: int = Field(default=0, ge=0)

    @staticmethod
    def build(
        operations: Sequence[Operation],
        dependencies: Sequence[Dependency] = (),
        *,
        analysis: Sequence[ItemAnalysis] = (),
        fusion_opportunities: Sequence[FusionOpportunity] = (),
    ) -> Schedule:
        """The schedule of `operations`, numbered from 0. Dependents, critical path and estimates are computed.

        ValueError when a dependency refers to a missing item, or on a cycle of dependencies.
        """
        predecessors: list[set[int]] = [set() for _ in operations]
        for edge in dependencies:
            if not 0 <= edge.dep_to < len(operations):
                raise ValueError(f"a dependency leads to item {edge.dep_to}, which is not in 0..{len(operations) - 1}")
            predecessors[edge.dep_to].add(edge.dep_from)
        depends_on = tuple(tuple(sorted(ids)) for ids in predecessors)
        topological_order(depends_on)
        dependents = compute_dependents(depends_on)
        items = tuple(
            ScheduleItem(
                item_id=item_id, operation=operation, depends_on=depends_on[item_id], dependents=dependents[item_id]
            )
            for item_id, operation in enumerate(operations)
        )
        critical_path = find_critical_path(depends_on, analysis)
        return Schedule(
            items=items,
            dependencies=tuple(dependencies),
            fusion_opportunities=tuple(fusion_opportunities),
            analysis=tuple(analysis),
            critical_path=critical_path,
            total_memory_usage=estimate_peak_memory(items),
            estimated_runtime_ns=sum_estimated_runtime_ns(critical_path, analysis),
        )

    def __repr__(self) -> str:
        from ..show.program import schedule_line

        return schedule_line(self)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from ..show.program import schedule_html

        return schedule_html(self)

    @property
    def execution_order(self) -> tuple[int, ...]:
        """Ids in the order of execution: by id where ids already follow the dependencies, else topological."""
        if all(predecessor < item.item_id for item in self.items for predecessor in item.depends_on):
            return tuple(range(len(self.items)))
        return topological_order([item.depends_on for item in self.items])

    @model_validator(mode="after")
    def _is_executable(self) -> Schedule:
        for position, item in enumerate(self.items):
            if item.item_id != position:
                raise ValueError(f"the item at position {position} has the id {item.item_id}; ids are positions")
        depends_on = [item.depends_on for item in self.items]
        for item in self.items:
            if len(set(item.depends_on)) != len(item.depends_on):
                raise ValueError(f"item {item.item_id} names a dependency twice: {item.depends_on}")
        topological_order(depends_on)
        for item, expected in zip(self.items, compute_dependents(depends_on), strict=True):
            if item.dependents != expected:
                raise ValueError(f"item {item.item_id} has the dependents {item.dependents}, not {expected}")
        self._check_edges()
        if self.analysis and [entry.item_id for entry in self.analysis] != list(range(len(self.items))):
            raise ValueError("the analysis is neither empty nor one entry per item in order of id")
        return self

    def _check_edges(self) -> None:
        count = len(self.items)
        for edge in self.dependencies:
            if not (0 <= edge.dep_from < count and 0 <= edge.dep_to < count):
                raise ValueError(f"the dependency {edge.dep_from} -> {edge.dep_to} leaves the items 0..{count - 1}")
            if edge.dep_from not in self.items[edge.dep_to].depends_on:
                raise ValueError(f"item {edge.dep_to} does not list its dependency on item {edge.dep_from}")
        for opportunity in self.fusion_opportunities:
            if not (0 <= opportunity.kernel_a < count and 0 <= opportunity.kernel_b < count):
                raise ValueError(f"a fusion opportunity names items outside 0..{count - 1}")
        if any(not 0 <= item_id < count for item_id in self.critical_path):
            raise ValueError(f"the critical path {self.critical_path} leaves the items 0..{count - 1}")
