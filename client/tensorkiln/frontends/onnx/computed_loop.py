"""Loops with a number of turns known only at run time: body and condition become regions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto

from ...build import Tensor
from ...build.loops import Inside, write_loop
from .node import Node
from .parameters import InnerParameters
from .value import Held


def computed_loop(node: Node, body: GraphProto, carried: Sequence[Held]) -> list[Held]:
    """The final carried values. Scan outputs are not supported, since their length is the number of turns.

    The turn number and the condition of the next turn are carried, too.
    """
    collected = len(body.output) - 1 - len(carried)
    if collected:
        node.fail(
            f"it collects {collected} values of turns that are counted at run time; the size of these is not known"
        )
    kept = _kept(body, carried)
    flag = node.tensor(1).reshape([]) if node.has(1) else node.builder.constant(True)
    given = [node.parameter(np.asarray(0, np.int64)), flag]
    given += [_tensor(node, value) for value, keeps in zip(carried, kept, strict=True) if not keeps]
    limits = [node.tensor(0).reshape([])] if node.has(0) else []
    inside = InnerParameters(node.parameters)
    own = [inside.builder.input(tensor.dtype, tensor.shape) for tensor in given]
    values = iter(own[2:])
    arguments: list[Held] = [value if keeps else next(values) for value, keeps in zip(carried, kept, strict=True)]
    again, *results = node.run_inside(body, [*own[:2], *arguments], f"{node.name}/body", inside)
    # Without an initial condition, the conditions of the turns are ignored.
    goes_on = inside.value(node.as_value(again, "the condition of a turn")).reshape([]) if node.has(1) else own[1]
    made = [own[0] + 1, goes_on]
    for value, keeps in zip(results, kept, strict=True):
        if not keeps:
            made.append(inside.value(node.as_value(value, "what a turn gives")))
    for before, after in zip(given, made, strict=True):
        if (before.dtype, before.shape) != (after.dtype, after.shape):
            counted = [node.value(place) for place in (0, 1) if node.has(place)]
            node.fail(f"it carries {shown(before)}, and a turn gives {shown(after)}{node.advice(*counted)}")
    around = [outer for outer, _ in inside.taken.values()]
    body_inputs = [*own, *_inputs(inside, limits), *(inner for _, inner in inside.taken.values())]
    whole = [*given, *limits, *around]
    condition = _condition(node, whole, len(given) if limits else None)
    found = iter(write_loop(node.builder, condition, Inside(inside.builder, body_inputs, made), whole)[2:])
    return [value if keeps else next(found) for value, keeps in zip(carried, kept, strict=True)]


def _condition(node: Node, given: Sequence[Tensor], limit: int | None) -> Inside:
    """The condition region: the carried flag, and that the turn is below the value at position `limit` of `given`."""
    builder = node.builder.inside()
    inputs = [builder.input(tensor.dtype, tensor.shape) for tensor in given]
    turn, flag = inputs[:2]
    return Inside(builder, inputs, [flag if limit is None else flag & (turn < inputs[limit])])


def _inputs(inside: InnerParameters, tensors: Sequence[Tensor]) -> list[Tensor]:
    return [inside.builder.input(tensor.dtype, tensor.shape) for tensor in tensors]


def _kept(body: GraphProto, carried: Sequence[Held]) -> list[bool]:
    """Whether each carried value leaves the body unchanged, and so need not be a tensor."""
    origin = {entry.name: entry.name for entry in body.input}
    for each in body.node:
        if each.op_type == "Identity" and each.input[0] in origin:
            origin[each.output[0]] = origin[each.input[0]]
    pairs = zip(body.input[2:], body.output[1:], strict=False)
    found = [origin.get(leaves.name) == enters.name for enters, leaves in pairs]
    return found[: len(carried)]


def _tensor(node: Node, value: Held) -> Tensor:
    known = node.as_value(value, "what a loop of computed turns carries")
    return known if isinstance(known, Tensor) else node.parameter(known)


def shown(tensor: Tensor) -> str:
    """The dtype and the shape of a value, for errors."""
    return f"{tensor.dtype} ({', '.join(map(str, tensor.shape))})"
