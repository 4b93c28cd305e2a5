"""sort by rank: the region compares each element with all others of its row; or only the first elements in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dialect.mlir import ir, stablehlo
from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.frontends.composed.ranking import in_order, is_selected, keys_of, ranks, reversed_keys, total_order
from tensorkiln.frontends.composed.selecting import first_positions

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
    first = _first(op, tensors, axis)
    if first is not None:
        return first
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


def _first(op: Op, tensors: Sequence[Tensor], axis: int) -> list[Tensor] | None:
    """The sorted tensors, of which only the first elements are read, with 0 elsewhere; None if the others are read too.

    And if selecting these takes longer than a sort, or the comparator is more than one comparison of the first tensor.
    """
    extent = tensors[0].shape[axis]
    count = max((_read(result, axis) or 0 for result in op.raw.results), default=0)
    is_partial = all(_read(result, axis) is not None for result in op.raw.results)
    keys = _keys(op, build.moveaxis(tensors[0], axis, -1))
    if (
        keys is None
        or not is_partial
        or not isinstance(extent, int)
        or not is_selected(tensors[0].dtype, extent, count)
    ):
        return None
    places = first_positions(keys, count)
    edges = [(0, 0)] * (places.rank - 1) + [(0, extent - count)]
    found = [build.gather(build.moveaxis(each, axis, -1), places, -1) for each in tensors]
    return [build.moveaxis(build.pad(each, edges), -1, axis) for each in found]


def _read(result: Any, axis: int) -> int | None:
    """The first elements along the axis that slices read of a result; None if it is read in another way."""
    most = 0
    for use in result.uses:
        reader = use.owner.operation
        if reader.name != "stablehlo.slice":
            return None
        most = max(most, ir.DenseI64ArrayAttr(reader.attributes["limit_indices"])[axis])
    return most


def _keys(op: Op, x: Tensor) -> Tensor | None:
    """Integers of which the greatest comes first, if the region compares elements of the first tensor and no others."""
    (block,) = op.region(0).blocks
    operations = [each.operation for each in block.operations]
    if len(operations) != 2 or operations[0].name != "stablehlo.compare" or x.dtype.is_bool:
        return None
    compared, returned = operations
    if list(compared.operands) != list(block.arguments)[:2] or list(returned.operands) != list(compared.results):
        return None
    direction = stablehlo.ComparisonDirectionAttr(compared.attributes["comparison_direction"]).value
    is_total = "compare_type" in compared.attributes and (
        stablehlo.ComparisonTypeAttr(compared.attributes["compare_type"]).value == "TOTALORDER"
    )
    if direction not in ("GT", "LT"):
        return None
    keys = total_order(x) if is_total and x.dtype.is_float else keys_of(x)
    return keys if direction == "GT" else reversed_keys(keys)


OPERATORS: Final[dict[str, Translator]] = {"stablehlo.sort": _sort}
