"""Merge adjacent loops that every access walks as one: long inner loops vectorise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tensorkiln import expr
from tensorkiln.expr import Dim

from .accesses import linear_access, loads, pinned_names
from .body import KernelBody, Stage, inner_loops
from .domain import Loop
from .index_space import linear_form
from .substitution import over

Strides = Mapping[str, tuple[Dim, ...]]
"""The strides, in elements, of each access of a stage, by mergeable loop."""


def collapse(body: KernelBody) -> KernelBody:
    """`body` with adjacent rows, and adjacent other loops of each stage, merged if all accesses allow it.

    Memoised, since several strategies need it.
    """
    return body.once(_collapsed)


def _collapsed(body: KernelBody) -> KernelBody:
    strides = [_strides(stage, body) for stage in body.stages]
    rows, row_values = _merged(body.rows, strides, body, "R")
    stages: list[Stage] = []
    changed = len(rows) < len(body.rows)
    for number, stage in enumerate(body.stages):
        inner = inner_loops(body, stage)
        loops, values = _merged(inner, strides[number : number + 1], body, f"L{number}_")
        if changed or len(loops) < len(inner):
            stage = over(body, stage, (*rows, *loops), row_values | values)
        stages.append(stage)
    return replace(body, rows=tuple(rows), stages=tuple(stages))


def _strides(stage: Stage, body: KernelBody) -> Strides:
    names = [loop.name for loop in stage.domain.loops]
    pinned = pinned_names(stage.elements, body.nodes, names, body.in_panels)
    free = [name for name in names if name not in pinned]
    forms = [linear_form(stage.domain.address, free)]
    for load in loads(stage.elements, body.nodes):
        access = linear_access(load, body.nodes, free)
        forms.append((access.offset, access.strides) if access else None)
    # Accesses that are not linear depend on data.
    known = [form[1] for form in forms if form is not None]
    return dict(zip(free, zip(*known, strict=True), strict=True)) if len(known) == len(forms) else {}


def _merged(
    loops: Sequence[Loop], stages: Sequence[Strides], body: KernelBody, prefix: str
) -> tuple[list[Loop], dict[str, Dim]]:
    """The merged loops, and the old loop indices in terms of them."""
    groups: list[list[Loop]] = []
    for loop in loops:
        if groups and all(_walk_as_one(groups[-1][-1], loop, strides) for strides in stages):
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


def _walk_as_one(outer: Loop, inner: Loop, strides: Strides) -> bool:
    """Whether every access of a stage steps along `outer` by exactly the extent of `inner`, of the same kind."""
    if outer.is_reduction != inner.is_reduction or outer.name not in strides or inner.name not in strides:
        return False
    steps = zip(strides[outer.name], strides[inner.name], strict=True)
    return all(far == expr.mul(near, inner.extent) for far, near in steps)
