"""Products of images and windows as long as those, such as the gradients of a convolution's weights.

The sum runs over all pixels, and there are few windows. In the order of the graph, neighbouring results differ in
their windows, too few to fill a vector, and factors with the pixels of a channel side by side are packed an element at
a time. So both factors are stored with their channels innermost, and the results in this order: windows, channels of
the image, channels of the other factor. Each step of the sum then multiplies vectors of channels, read in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dialect.memory import ContiguousOp
from dialect.mlir import ir
from dialect.types import type_of
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, free_symbols

from ..decompose import builder
from ..fuse.costs import MOVEMENT
from ..loops.accesses import loads
from ..loops.contraction import MIN_COLUMNS
from ..loops.index_space import IndexSpace, linear_form
from ..loops.scalar_dag import Interner
from ..trace.tracer import Tracer
from ..trace.traces import TRACES
from ..values import Function, Range, Value


def order_long_windows(graph: ir.Operation, function: Function) -> None:
    """Rewrite the sums over long windows in place."""
    operations = [op.operation for op in graph.regions[0].blocks[0].operations]
    values: dict[ir.Value, Value] = dict(zip(graph.regions[0].blocks[0].arguments, function.arguments, strict=True))
    values |= {operations[value.position].results[0]: value for value in function.values}
    for value in function.values:
        if multiplies_new_values(value, frozenset()):
            _order(operations[value.position], value, values, function)


def multiplies_new_values(value: Value, prepared: frozenset[Value]) -> bool:
    """Whether a value is a sum of products in float32 of two tensors, neither of them a moved prepared value."""
    if value.kind != "reduce_axis" or value.text("reduce_op_kind") != "sum" or value.dtype is not DType.FLOAT32:
        return False
    (summed,) = value.operands
    is_product = summed.kind == "binop" and summed.text("op") == "mul" and summed.dtype is DType.FLOAT32
    is_product = is_product and all(factor.shape == summed.shape for factor in summed.operands)
    return is_product and prepared.isdisjoint(_unmoved(factor) for factor in summed.operands)


def _unmoved(value: Value) -> Value:
    while value.kind in MOVEMENT and len(value.operands) == 1:
        value = value.operands[0]
    return value


@dataclass(frozen=True)
class _Factor:
    """A factor read from `stored` by `moves`: dimension `channel` of that is loop `along` of the product.

    `used` are the loops of the product on which the factor depends, `windows` the results of long windows. `is_stored`
    means that no movement comes before.
    """

    stored: ir.Value
    moves: Sequence[Any]
    channel: int
    along: int
    used: frozenset[int]
    windows: frozenset[int]
    is_stored: bool = False


def _order(reduction: ir.Operation, value: Value, values: dict[ir.Value, Value], function: Function) -> None:
    (product,) = reduction.operands
    shape, axes = type_of(product).shape, value.ints("axes")
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    found = [_factor(factor, shape, axes, values, function) for factor in product.owner.operands]
    image, other = sorted(found, key=lambda factor: factor is None or not factor.windows)
    if image is None or other is None or not image.windows or other.windows:
        return
    apart = {image.along, other.along}
    last = image if isinstance(few := shape[other.along], int) and few < MIN_COLUMNS else other
    if len(apart) != 2 or image.along in other.used or other.along in image.used or image.windows & other.used:
        return

    def place(axis: int) -> tuple[int, int]:
        groups = (axis not in image.used & other.used, axis in last.used, axis in apart)
        return sum(is_later << bit for bit, is_later in zip((4, 2, 1), groups, strict=True)), axis

    order = sorted(kept, key=place)
    with ir.InsertionPoint(reduction), reduction.location:
        moved = [builder.permute(_in_order(factor), [*order, *axes]) for factor in found if factor is not None]
        whole = builder.binop(product.owner.op, moved[0], moved[1])
        extents = [shape[axis] for axis in order]
        sums = builder.reduce(value.fields["reduce_op_kind"], whole, range(len(kept), len(shape)), extents)
        back = builder.permute(sums, [order.index(axis) for axis in kept])
        result = builder.reshape(back, value.shape)
    reduction.results[0].replace_all_uses_with(result)
    # The result of a later op may get its address.
    del values[reduction.results[0]]
    reduction.erase()


def _factor(
    factor: ir.Value, shape: Sequence[Dim], axes: Sequence[int], values: dict[ir.Value, Value], function: Function
) -> _Factor | None:
    """How a factor reads the first value that it can be stored as, from the last padded one or what is moved on."""
    source, moves = builder.unmoved(factor)
    made = [source, *(move.operation.results[0] for move in moves)]
    padded = [at for at, move in enumerate(moves, 1) if move.operation.name == "kiln.pad"]
    first = padded[-1] if padded else 0
    size = expr.product(type_of(made[first]).shape)
    for at in range(first, len(made)):
        if made[at] not in values or expr.product(type_of(made[at]).shape) != size:
            return None
        found = _read(made[at], moves[at:], values[factor], values[made[at]], shape, axes, function.symbols)
        if found is not None:
            return replace(found, is_stored=at == 0)
    return None


def _read(
    stored: ir.Value,
    moves: Sequence[Any],
    factor: Value,
    read: Value,
    shape: Sequence[Dim],
    axes: Sequence[int],
    symbols: Mapping[str, Range],
) -> _Factor | None:
    space, nodes, names = IndexSpace(symbols), Interner(), [f"d{axis}" for axis in range(len(shape))]
    index = tuple(0 if extent == 1 else space.add(name, extent) for name, extent in zip(names, shape, strict=True))
    found = loads((Tracer(space, {read: 0}, TRACES, nodes).element(factor, index),), nodes)
    if len(found) != 1 or found[0].conditions or not found[0].index:
        return None
    (load,) = found
    used = [{axis for axis, name in enumerate(names) if name in free_symbols(dim)} for dim in load.index]
    channels = [
        (dimension, loop)
        for dimension, loops in enumerate(used)
        for loop in loops
        if len(loops) == 1 and loop not in axes and load.index[dimension] == index[loop]
    ]
    channels = [each for each in channels if isinstance(shape[each[1]], int)]
    if not channels or any(linear_form(dim, names) is None for dim in load.index):
        return None
    windows = {each for loops in used for each in _windows(loops, shape, axes)}
    return _Factor(stored, moves, *channels[-1], frozenset[int]().union(*used), frozenset(windows))


def _windows(loops: set[int], shape: Sequence[Dim], axes: Sequence[int]) -> set[int]:
    """The results among the loops of one dimension, if windows step through it that are longer than their number."""
    summed = [shape[loop] for loop in loops if loop in axes]
    kept = {loop for loop in loops if loop not in axes}
    if len(summed) != 1 or len(kept) != 1:
        return set()
    (results,) = (shape[loop] for loop in kept)
    is_long = isinstance(results, int) and not (isinstance(summed[0], int) and summed[0] <= results)
    return kept if is_long else set()


def _in_order(factor: _Factor) -> ir.Value:
    """The factor with the loops of the product, read from memory whose innermost dimension has its channels."""
    stored = factor.stored
    long = [axis for axis, extent in enumerate(type_of(stored).shape) if extent != 1]
    if long[-1] != factor.channel:
        stored = stored_with(stored, factor.channel)
    elif not factor.is_stored:
        stored = ContiguousOp.make([stored], type_of(stored)).results[0]
    for move in factor.moves:
        stored = builder.moved(move, stored)
    return stored


def stored_with(value: ir.Value, inner: int) -> ir.Value:
    """`value`, stored with dimension `inner` innermost."""
    rank = type_of(value).rank
    order = [axis for axis in range(rank) if axis != inner]
    moved = builder.permute(value, [*order, inner])
    stored = ContiguousOp.make([moved], type_of(moved)).results[0]
    return builder.permute(stored, [*range(inner), rank - 1, *range(inner, rank - 1)])
