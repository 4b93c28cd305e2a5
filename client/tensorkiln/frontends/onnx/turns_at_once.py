"""A Scan of independent turns, run as one turn: every value gets a last axis, which runs over the turns.

Exporters write the distances of nearest neighbours as such a Scan, with one turn per training example.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper
from onnx.helper import get_attribute_value

from ... import build
from ...build import Tensor
from .node import Node
from .value import Value

ELEMENTWISE: Final = frozenset(
    {"Abs", "Add", "Cast", "Div", "Exp", "Identity", "Log", "Max", "Min", "Mul", "Neg", "Pow", "Sqrt", "Sub"}
)
REDUCTIONS: Final = frozenset(
    {"ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare"}
)
"""Reductions; their axes must be counted from the first, so that a new last axis does not change them."""


def at_once(node: Node, body: GraphProto, carried: Sequence[Value], scanned: Sequence[Value]) -> list[Tensor] | None:
    """The collected outputs, with the turns along the last axis; None if the turns may depend on each other.

    The turns run over the first axis of each of `scanned`. The body must return carried values unchanged.
    """
    ranks = {entry.name: len(value.shape) for entry, value in zip(body.input, carried, strict=False)}
    elements = body.input[len(carried) :]
    ranks |= {entry.name: len(value.shape) - 1 for entry, value in zip(elements, scanned, strict=True)}
    if node.opset < 13 or not _is_separate(body, ranks) or not _is_kept(body, len(carried)):
        return None
    given = [_wide(value) for value in carried]
    moved = [value.moveaxis(0, -1) if isinstance(value, Tensor) else np.moveaxis(value, 0, -1) for value in scanned]
    results = node.run(body, [*given, *moved], f"{node.name}/turns")
    extent = scanned[0].shape[0]
    found: list[Tensor] = []
    for result in results[len(carried) :]:
        value = node.as_value(result, "what is collected of a turn")
        tensor = value if isinstance(value, Tensor) else node.parameter(value)
        found.append(build.expand(tensor, [*tensor.shape[:-1], extent]))
    return found


def _wide(value: Value) -> Value:
    return value.unsqueeze(-1) if isinstance(value, Tensor) else np.expand_dims(value, -1)


def _is_kept(body: GraphProto, count: int) -> bool:
    """Whether the body returns each carried value unchanged."""
    origin = {entry.name: entry.name for entry in body.input}
    for each in body.node:
        if each.op_type == "Identity" and each.input[0] in origin:
            origin[each.output[0]] = origin[each.input[0]]
    pairs = zip(body.input[:count], body.output[:count], strict=True)
    return all(origin.get(leaves.name) == enters.name for enters, leaves in pairs)


def _is_separate(body: GraphProto, ranks: dict[str, int]) -> bool:
    """Whether the body computes the same with an extra last axis. Adds the rank of every computed name to `ranks`."""
    constants = {tensor.name: tensor for tensor in body.initializer}
    for each in body.node:
        if each.domain not in ("", "ai.onnx") or len(each.output) != 1:
            return False
        is_reduction = each.op_type in REDUCTIONS
        if not is_reduction and each.op_type not in ELEMENTWISE:
            return False
        operands = each.input[:1] if is_reduction else each.input
        computed = [ranks[name] for name in operands if name in ranks]
        others = [constants.get(name) for name in operands if name not in ranks]
        rank = max(computed, default=-1)
        if any(other is None or prod(other.dims) != 1 or len(other.dims) > rank for other in others):
            return False
        if is_reduction:
            axes = _axes(each, constants)
            if not axes or min(axes) < 0 or max(axes) >= rank:
                return False
            keeps = next((get_attribute_value(entry) for entry in each.attribute if entry.name == "keepdims"), 1)
            rank -= 0 if keeps else len(axes)
        ranks[each.output[0]] = rank
    return all(entry.name in ranks for entry in body.output)


def _axes(node: NodeProto, constants: dict[str, TensorProto]) -> list[int]:
    """The axes of a reduction; empty if they are omitted or computed."""
    if len(node.input) > 1:
        known = constants.get(node.input[1])
        return [] if known is None else [int(axis) for axis in numpy_helper.to_array(known).reshape(-1).tolist()]
    return [axis for entry in node.attribute if entry.name == "axes" for axis in entry.ints]
