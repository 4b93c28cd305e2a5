"""Pad in all its modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...build import Tensor, cat, ones, pad, shrink, where
from ...expr import add, sub
from ..composed.spreading import between
from . import axes
from .node import Node
from .value import Value, dims_of

Widths: TypeAlias = "list[tuple[int, int]]"


def pad_(node: Node) -> Value:
    """Pad. Negative widths crop first; modes other than `constant` repeat elements of the cropped tensor."""
    x = node.tensor(0)
    mode = node.choice("mode", ("constant", *_EDGES), "constant")
    widths, value = _widths(node, x.rank), _fill(node)
    cut = _cut(node, x, [(max(-before, 0), max(-after, 0)) for before, after in widths])
    added = [(max(before, 0), max(after, 0)) for before, after in widths]
    if mode == "constant":
        if isinstance(value, Tensor):
            return where(pad(ones(x.builder, cut.shape, "bool"), added), pad(cut, added), value)
        return pad(cut, added, value if x.dtype.wide.is_float or x.dtype.is_bool else int(value))
    for axis, (before, after) in enumerate(added):
        cut = _extend(node, cut, axis, before, after, mode)
    return cut


def _cut(node: Node, x: Tensor, widths: Widths) -> Tensor:
    for dim, (before, after) in zip(x.shape, widths, strict=True):
        if before + after > x.builder.bounds(dim)[1]:
            node.invalid(f"{before} and {after} elements are cut from a dimension of {dim}")
    return shrink(x, [(before, dim - after) for dim, (before, after) in zip(x.shape, widths, strict=True)])


def _widths(node: Node, rank: int) -> Widths:
    given = node.integers("pads") if node.opset < 11 else dims_of(node.host(1))
    chosen = axes.integers(node, node.host(3)) if node.has(3) else list(range(rank))
    if any(not -rank <= axis < rank for axis in chosen):
        node.invalid(f"the axes {chosen} are out of range for rank {rank}")
    static = [width for width in given if isinstance(width, int)]
    if len(static) != 2 * len(chosen):
        node.fail(f"pads {given} do not fit the axes {chosen}")
    widths = [(0, 0)] * rank
    for place, axis in enumerate(chosen):
        widths[axis] = static[place], static[place + len(chosen)]
    return widths


def _fill(node: Node) -> float | Tensor:
    """The padding value; since opset 11 it may be computed at run time."""
    if node.opset < 11:
        return node.number("value", 0.0)
    if not node.has(2):
        return 0
    given = node.value(2)
    return given.reshape() if isinstance(given, Tensor) else given.reshape(()).item()


def _extend(node: Node, x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    size = x.shape[axis]
    if before == after == 0:
        return x
    least, _ = x.builder.bounds(size)
    most = {"edge": max(before, after) if least else 0, "reflect": least - 1, "wrap": least}[mode]
    if max(before, after) > most:
        has = f"of size {size}" if isinstance(size, int) else f"of size {size}, which may be {least}"
        node.fail(f"{before} and {after} elements are not repeated from axis {axis} {has}, in the mode {mode}")
    return cat([*_EDGES[mode](x, axis, before, True), x, *_EDGES[mode](x, axis, after, False)], axis)


def _reflect(x: Tensor, axis: int, count: int, is_before: bool) -> Sequence[Tensor]:
    begin = 1 if is_before else sub(x.shape[axis], 1 + count)
    return [between(x, axis, begin, add(begin, count)).flip(axis)] if count else []


def _edge(x: Tensor, axis: int, count: int, is_before: bool) -> Sequence[Tensor]:
    begin = 0 if is_before else sub(x.shape[axis], 1)
    end = between(x, axis, begin, add(begin, 1))
    return [end.expand([count if place == axis else -1 for place in range(x.rank)])] if count else []


def _wrap(x: Tensor, axis: int, count: int, is_before: bool) -> Sequence[Tensor]:
    size = x.shape[axis]
    return [between(x, axis, sub(size, count), size) if is_before else between(x, axis, 0, count)] if count else []


_EDGES: dict[str, Callable[[Tensor, int, int, bool], Sequence[Tensor]]] = {
    "edge": _edge,
    "reflect": _reflect,
    "wrap": _wrap,
}
OPERATORS: dict[str, Callable[[Node], Value]] = {"Pad": pad_}
