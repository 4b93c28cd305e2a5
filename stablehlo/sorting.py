"""sort by rank: the region compares each element with all others of its row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tensorkiln import build
from tensorkiln.frontends.composed.ranking import in_order, ranks

from .op import Op
from .table import Translator
from .value import Value

MAX_RANKED: Final = 1 << 13
"""The longest sorted axis, since each element is compared with all others."""


def _sort(op: Op) -> Sequence[Value]:
    """Sort; always stable."""
    tensors = op.tensors()
    rank = tensors[0].rank
    if rank == 0:
        return tensors
    axis = op.integer("dimension", -1) % rank
    extent = tensors[0].shape[axis]
    most = op.builder.bounds(extent)[1]
    if most > MAX_RANKED:
        op.over(f"axis {axis} has up to {most} elements; the limit is {MAX_RANKED}", "sorted", MAX_RANKED, most)
    moved = [build.moveaxis(each, axis, -1) for each in tensors]
    own, other = [each.unsqueeze([-1]) for each in moved], [each.unsqueeze([-2]) for each in moved]
    table = [*moved[0].shape, extent]
    (forth,) = op.lifted(0, [each for pair in zip(other, own, strict=True) for each in pair], orders=True)
    (back,) = op.lifted(0, [each for pair in zip(own, other, strict=True) for each in pair], orders=True)
    forth, back = op.whole(forth, table), op.whole(back, table)
    # If the comparator holds both ways, the elements are equal.
    found = ranks(forth & ~back, ~(forth ^ back))
    return [build.moveaxis(in_order(found, each, extent), -1, axis) for each in moved]


OPERATORS: Final[dict[str, Translator]] = {"stablehlo.sort": _sort}
