"""Running reductions: along a dynamic dimension, or along a long static one.

`jax.export` writes a `reduce_window` of computed sizes as a custom call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dialect.mlir import ir
from tensorkiln.build import Tensor
from tensorkiln.build.conversion import widened
from tensorkiln.build.windows import Window
from tensorkiln.expr import Dim, sub
from tensorkiln.frontends.composed.running import LONG, LONGEST, running

from .op import Op
from .reduction import identity
from .regions import single_operation
from .value import Known, Value

_TOTALS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "stablehlo.add": lambda table: table.sum([-1]),
    "stablehlo.maximum": lambda table: table.max([-1]),
    "stablehlo.minimum": lambda table: table.min([-1]),
    "stablehlo.multiply": lambda table: table.prod([-1]),
}


def running_total(op: Op, x: Tensor, initial: Value, over: Window, edges: Sequence[tuple[int, int]]) -> Tensor | None:
    """The totals of windows that are as long as a long axis and end, or begin, at each of its elements.

    None for other windows, which have fewer elements than all pairs of an axis.
    """
    name = single_operation(op.region(0))
    axes = [axis for axis, extent in enumerate(over.size) if extent != 1]
    if len(axes) != 1 or name not in _TOTALS or x.dtype.is_bool or {*over.stride, *over.dilation} != {1}:
        return None
    (axis,) = axes
    extent = x.shape[axis]
    reversed_ = _is_reversed(over.size[axis], edges[axis], extent)
    is_plain = all(pair == (0, 0) for at, pair in enumerate(edges) if at != axis)
    if reversed_ is None or not is_plain or not isinstance(extent, int) or not LONG <= extent <= LONGEST:
        return None
    if not isinstance(initial, Known) or initial.splat != identity(name, x.dtype):
        # The padding of a window has the initial value, too.
        return None
    return _running(op, x, axis, name, reversed_)


def dynamic_reduce_window(op: Op) -> Value:
    """Translate windows that run from the start of one dimension to each element, or from each element to the end."""
    if len(op.operands) != 7:
        op.fail("windows of computed sizes are supported for one tensor only")
    x, initial = op.tensor(0), op.operands[1]
    size, strides, base, dilations, padding = (
        op.known(place, "the form of a window").reshape(-1).tolist() for place in range(2, 7)
    )
    edges = list(zip(padding[::2], padding[1::2], strict=True))
    axes = [axis for axis, extent in enumerate(size) if extent != 1]
    others = [axis for axis in range(x.rank) if axis not in axes]
    name = single_operation(_called(op))
    is_plain = all(step == 1 for step in (*strides, *base, *dilations)) and all(
        edges[axis] == (0, 0) for axis in others
    )
    reversed_ = _is_reversed(size[axes[0]], edges[axes[0]], x.shape[axes[0]]) if len(axes) == 1 else None
    if not is_plain or reversed_ is None or name not in _TOTALS or x.dtype.is_bool:
        op.fail("windows of computed sizes are only supported for running sums, products, maxima and minima")
    neutral = identity(name, x.dtype)
    if not isinstance(initial, Known) or initial.splat != neutral:
        op.fail(f"a running total starts from {neutral}, not from another number")
    return _running(op, x, axes[0], name, reversed_)


def _running(op: Op, x: Tensor, axis: int, name: str, is_reversed: bool) -> Tensor:
    wide = widened(x)
    neutral = identity(name, x.dtype)
    return running(wide, axis, _TOTALS[name], neutral, is_reversed, refuse=op.fail).cast(x.dtype)


def _is_reversed(size: Dim, edges: tuple[Dim, Dim], dim: Dim) -> bool | None:
    """Whether each window starts at its element, instead of ending there; None if it does neither."""
    before = sub(dim, 1)
    if size != dim or edges not in ((before, 0), (0, before)):
        return None
    return edges == (0, before)


def _called(op: Op) -> Any:
    """The region of the called function. InvalidGraphError if the module lacks it."""
    (name,) = (ir.FlatSymbolRefAttr(each).value for each in op.attribute("called_computations"))
    module = op.raw
    while module.parent is not None:
        module = module.parent
    for each in module.regions[0].blocks[0].operations:
        own = each.operation.attributes
        if "sym_name" in own and ir.StringAttr(own["sym_name"]).value == name:
            return each.operation.regions[0]
    op.invalid("it names a function that the module does not have")
