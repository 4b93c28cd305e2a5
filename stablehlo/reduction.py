"""reduce: one node if there is one for its region, else a tree over pairs of elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.dtypes import DType

from .op import Op
from .regions import single_operation
from .table import Translator
from .value import Known, Value

MAX_PADDED: Final = 1 << 16
"""The largest upper bound of a dynamic dimension that is reduced by a tree over pairs."""

Reduce = Callable[[Tensor, Sequence[int]], Tensor]


def _any(x: Tensor, axes: Sequence[int]) -> Tensor:
    return x.any(axes)


def _all(x: Tensor, axes: Sequence[int]) -> Tensor:
    return x.all(axes)


_NUMBERS: Final[dict[str, Reduce]] = {
    "stablehlo.add": lambda x, axes: x.sum(axes),
    "stablehlo.maximum": lambda x, axes: x.max(axes),
    "stablehlo.minimum": lambda x, axes: x.min(axes),
    "stablehlo.multiply": lambda x, axes: x.prod(axes),
}
_BOOLS: Final[dict[str, Reduce]] = {
    "stablehlo.add": _any,
    "stablehlo.and": _all,
    "stablehlo.maximum": _any,
    "stablehlo.minimum": _all,
    "stablehlo.multiply": _all,
    "stablehlo.or": _any,
}
"""Reductions along axes, by the operation of the region."""


def identity(name: str, dtype: DType) -> bool | int | float:
    """The identity element of a reduction."""
    if name in ("stablehlo.add", "stablehlo.or"):
        return False if dtype.is_bool else 0
    if name in ("stablehlo.multiply", "stablehlo.and"):
        return True if dtype.is_bool else 1
    return dtype.min if name == "stablehlo.maximum" else dtype.max


def _reduce(op: Op) -> Sequence[Value]:
    count = op.result_count
    inputs, inits = op.tensors()[:count], op.operands[count:]
    return reduced(op, inputs, inits, op.integers("dimensions"))


def reduced(op: Op, inputs: Sequence[Tensor], inits: Sequence[Value], axes: Sequence[int]) -> list[Tensor]:
    """Reduce the inputs along `axes` by the first region of `op`, starting from their initial values."""
    first = inputs[0]
    if len(inputs) == 1:
        name = single_operation(op.region(0))
        table = _BOOLS if first.dtype.is_bool else _NUMBERS
        if name in table:
            return [_with_initial(op, name, table[name](first, list(axes)), inits[0])]
    return _pair_by_pair(op, inputs, inits, axes)


def _with_initial(op: Op, name: str, result: Tensor, initial: Value) -> Tensor:
    if isinstance(initial, Known) and initial.splat == identity(name, result.dtype):
        return result
    (combined,) = op.lifted(0, [op.element(initial), result])
    return op.whole(combined, result.shape)


def _pair_by_pair(op: Op, inputs: Sequence[Tensor], inits: Sequence[Value], axes: Sequence[int]) -> list[Tensor]:
    """Reduce by a balanced tree over neighbours, which keeps the order of the elements."""
    first = inputs[0]
    kept = [axis for axis in range(first.rank) if axis not in axes]
    sizes = [dim for axis, dim in enumerate(first.shape) if axis in axes and isinstance(dim, int)]
    if len(sizes) != len(axes):
        return _of_any_length(op, inputs, inits, axes)
    shape = [first.shape[axis] for axis in kept]
    whole = [op.element(each) for each in inits]
    length = prod(sizes)
    if length == 0:
        return [op.whole(each, shape) for each in whole]
    order = [*kept, *sorted(axes)]
    level = [each.permute(order).reshape([*shape, length]) for each in inputs]
    while length > 1:
        half = length // 2
        pairs = [each[..., : 2 * half].reshape([*shape, half, 2]) for each in level]
        joined = op.lifted(0, [each[..., place] for place in (0, 1) for each in pairs])
        joined = [op.whole(each, [*shape, half]) for each in joined]
        if length % 2:
            joined = [build.cat([new, old[..., length - 1 :]], -1) for new, old in zip(joined, level, strict=True)]
        level, length = joined, half + length % 2
    results = op.lifted(0, [*whole, *(each.reshape(shape) for each in level)])
    return [op.whole(each, shape) for each in results]


def _of_any_length(op: Op, inputs: Sequence[Tensor], inits: Sequence[Value], axes: Sequence[int]) -> list[Tensor]:
    """Reduce one dynamic dimension, padded to its upper bound; a pair whose right element is padding keeps the left."""
    first, whole = inputs[0], [op.element(each) for each in inits]
    axis, *others = axes
    dim = first.shape[axis]
    length = op.builder.bounds(dim)[1]
    shape = [size for place, size in enumerate(first.shape) if place != axis]
    if op.is_open(dim):
        # The translation fails or restarts, so only the shapes matter.
        return [op.whole(each, shape) for each in whole]
    if others or length > MAX_PADDED:
        op.fail(
            "its region is not a sum, product, maximum or such, and takes one dimension that is not static, of at most "
            f"{MAX_PADDED} elements; here these are {len(axes)}, and {dim} may be {length}"
        )
    edges = [(0, 0)] * len(shape) + [(0, length - dim)]
    level = [build.pad(build.moveaxis(each, axis, -1), edges) for each in inputs]
    count, reach = build.dim_value(op.builder, dim), 1
    while length > 1:
        half = (length + 1) // 2
        edges = [(0, 0)] * len(shape) + [(0, 2 * half - length)]
        pairs = [build.pad(each, edges).reshape([*shape, half, 2]) for each in level]
        left, right = ([each[..., place] for each in pairs] for place in (0, 1))
        joined = op.lifted(0, [*left, *right])
        is_there = build.arange(op.builder, half, DType.INT64) * (2 * reach) + reach < count
        level = [
            build.where(is_there, op.whole(new, [*shape, half]), old) for new, old in zip(joined, left, strict=True)
        ]
        length, reach = half, 2 * reach
    found = op.lifted(0, [*whole, *(each.reshape(shape) for each in level)])
    is_any = build.arange(op.builder, 1, DType.INT64).reshape([]) < count
    return [op.whole(build.where(is_any, new, old), shape) for new, old in zip(found, whole, strict=True)]


OPERATORS: Final[dict[str, Translator]] = {"stablehlo.reduce": _reduce}
