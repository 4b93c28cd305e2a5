"""Cut the loops of a map into pieces in which a condition on the loop index is constant.

A concatenation computes something else in each part of the result. Within a piece no element needs a select, and the
loops can be vectorised.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Final

from tensorkiln import expr
from tensorkiln.expr import Expr

from ..loops.body import KernelBody, Stage
from ..loops.domain import Loop
from ..loops.index_space import linear_form
from ..loops.scalar_dag import Choose, walk
from ..loops.substitution import over

MOST: Final = 8
"""Most pieces of a map: each has code of its own."""
LEAST_EXTENT: Final = 4
"""Least extent of a loop that is worth cutting."""

Piece = tuple[Stage, tuple[Loop, ...]]
"""A stage and its loops inside a row."""


def pieces_of(body: KernelBody, stage: Stage, inner: Sequence[Loop]) -> list[Piece]:
    """The stage, or stages that each compute a part of it if it selects by the index of a loop inside a row."""
    whole: Piece = (stage, tuple(inner))
    if stage.combine is not None:
        return [whole]
    chosen = [node for node in walk(stage.elements, body.nodes) if isinstance(node, Choose)]
    conditions = {each for node in chosen for each in node.conditions if isinstance(each, Expr)}
    cuts = {loop: _cuts(loop, conditions) for loop in inner}
    if not any(cuts.values()) or prod(len(places) + 1 for places in cuts.values()) > MOST:
        return [whole]
    pieces = [whole]
    for loop, places in cuts.items():
        if places:
            pieces = [part for piece in pieces for part in _cut(body, piece, loop, places)]
    return pieces


def _cuts(loop: Loop, conditions: set[Expr]) -> list[int]:
    """The indices at which a condition that depends on this loop alone starts or stops to hold."""
    if not isinstance(loop.extent, int) or loop.extent < LEAST_EXTENT:
        return []
    found: set[int] = set()
    for condition in conditions:
        form = linear_form(condition, [loop.name])
        offset, (step,) = form if form is not None else (0, (0,))
        if isinstance(offset, int) and isinstance(step, int) and step != 0:
            # It holds from -offset/step on, rounded up, or up to there, rounded down.
            found.add(-(offset // step) if step > 0 else offset // -step + 1)
    return sorted(place for place in found if 0 < place < loop.extent)


def _cut(body: KernelBody, piece: Piece, loop: Loop, places: Sequence[int]) -> list[Piece]:
    stage, inner = piece
    parts: list[Piece] = []
    assert isinstance(loop.extent, int), "a loop that is cut has a known extent"
    for number, (first, end) in enumerate(pairwise((0, *places, loop.extent))):
        name = f"{loop.name}_{number}"
        value = expr.add(body.space.add(name, end - first), first)
        part = Loop(name, end - first)
        renamed = tuple(part if each == loop else each for each in stage.domain.loops)
        made = over(body, stage, renamed, {loop.name: value})
        parts.append((made, tuple(part if each == loop else each for each in inner)))
    return parts
