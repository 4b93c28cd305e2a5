"""Merge neighbouring loops that every access walks as one: long inner loops are what vectorises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tensorkiln import expr
from tensorkiln.expr import Dim

from .accesses import linear_access, loads, pinned_names
from .body import KernelBody, Stage
from .domain import Loop
from .index_space import linear_form
from .substitution import over


def collapse(body: KernelBody) -> KernelBody:
    """`body` with every run of rows, and of the other loops of each stage, merged where all accesses allow it."""
    rows, row_values = _merged(body.rows, body.stages, body, "R")
    stages: list[Stage] = []
    changed = len(rows) < len(body.rows)
    for number, stage in enumerate(body.stages):
        inner = [loop for loop in stage.domain.loops if loop not in body.rows]
        loops, values = _merged(inner, (stage,), body, f"L{number}_")
        if changed or len(loops) < len(inner):
            stage = over(body, stage, (*rows, *loops), row_values | values)
        stages.append(stage)
    return replace(body, rows=tuple(rows), stages=tuple(stages))


def _merged(
    loops: Sequence[Loop], stages: Sequence[Stage], body: KernelBody, prefix: str
) -> tuple[list[Loop], dict[str, Dim]]:
    """The loops after merging, and the old loop indices in terms of the new ones."""
    groups: list[list[Loop]] = []
    for loop in loops:
        if groups and _may_merge(groups[-1][-1], loop, stages, body):
            groups[-1].append(loop)
        else:
            groups.append([loop])
    if len(groups) == len(loops):
        return list(loops), {}
    merged: list[Loop] = []
    values: dict[str, Dim] = {}
    for group in groups:
        extents = [loop.extent for loop in group]
        loop = Loop(f"{prefix}{len(merged)}", expr.product(extents), group[0].is_reduction)
        parts = body.space.unflatten(body.space.add(loop.name, loop.extent), extents)
        values |= {old.name: part for old, part in zip(group, parts, strict=True)}
        merged.append(loop)
    return merged, values


def _may_merge(outer: Loop, inner: Loop, stages: Sequence[Stage], body: KernelBody) -> bool:
    if outer.is_reduction != inner.is_reduction:
        return False
    return all(_walks_as_one(outer, inner, stage, body) for stage in stages)


def _walks_as_one(outer: Loop, inner: Loop, stage: Stage, body: KernelBody) -> bool:
    """Whether every access of the stage steps over `outer` exactly where `inner` ends."""
    names = [loop.name for loop in stage.domain.loops]
    if not pinned_names(stage.elements, body.nodes, names, body.in_panels).isdisjoint((outer.name, inner.name)):
        return False
    pair = (outer.name, inner.name)
    forms = [linear_form(stage.domain.address, pair)]
    for load in loads(stage.elements, body.nodes):
        # An address that is linear in all loops but not in the pair alone cannot be: a pinned loop was ruled out above.
        access = linear_access(load, body.nodes, pair)
        forms.append((access.offset, access.strides) if access else None)
    return all(form is not None and form[1][0] == expr.mul(form[1][1], inner.extent) for form in forms)
