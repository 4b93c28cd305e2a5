"""Movement operations, and concatenation."""

from __future__ import annotations

from typing import Final

from ... import build
from ...build import Tensor
from ...build.movement import shrink
from ...expr import add, sub
from .node import Node, Operation, the_first


def _reshaped(node: Node) -> Tensor:
    return node.value.reshape(node.sizes.shape(node.uop))


def _expanded(node: Node) -> Tensor:
    """Expand the operand; the operation's new dimensions come before those of the operand."""
    return node.value.expand(node.sizes.shape(node.uop))


def _permuted(node: Node) -> Tensor:
    return node.value.permute(*node.uop.marg)


def _flipped(node: Node) -> Tensor:
    return node.value.flip([axis for axis, is_flipped in enumerate(node.uop.marg) if is_flipped])


def _padded(node: Node) -> Tensor:
    """Pad; for each axis the operation has the operand's offset in the result and the size of the result."""
    pairs = [(node.sizes.dim(begin), node.sizes.dim(size)) for begin, size in node.uop.marg]
    widths = [(begin, sub(sub(size, begin), own)) for (begin, size), own in zip(pairs, node.value.shape, strict=True)]
    return node.value.pad(widths)


def _shrunk(node: Node) -> Tensor:
    pairs = [(node.sizes.dim(begin), node.sizes.dim(size)) for begin, size in node.uop.marg]
    return shrink(node.value, [(begin, add(begin, size)) for begin, size in pairs])


def _stacked(node: Node) -> Tensor:
    return build.stack(list(node.values), 0)


OPERATIONS: Final = {
    "RESHAPE": Operation(_reshaped, the_first),
    "EXPAND": Operation(_expanded, the_first),
    "PERMUTE": Operation(_permuted, the_first),
    "FLIP": Operation(_flipped, the_first),
    "PAD": Operation(_padded, the_first),
    "SHRINK": Operation(_shrunk, the_first),
    "STACK": Operation(_stacked),
}
