"""If, Loop and Scan: subgraphs are unrolled during the import if the number of turns is known by then.

Otherwise a Loop becomes a loop of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ... import build
from ...build import Tensor, stack
from ...limits import MOST_TURNS
from .computed_loop import computed_loop, shown
from .node import Node
from .turns_at_once import at_once
from .value import Held, Host, Items, Nothing, Value

MAX_TURNS = 1 << 12
"""The most turns of an unrolled loop; each turn adds its nodes to the graph."""


def if_(node: Node) -> list[Held]:
    """If: the chosen branch if the condition is known; otherwise both branches and a selection of their results."""
    condition = node.value(0)
    if isinstance(condition, Tensor):
        return _one_of_two(node, condition.reshape([]))
    chosen, other = ("then_branch", "else_branch") if _flag(node, condition) else ("else_branch", "then_branch")
    node.ignore(other)
    return node.run(node.subgraph(chosen), (), f"{node.name}/{chosen}")


def _one_of_two(node: Node, condition: Tensor) -> list[Held]:
    first = node.builder.node_count
    left, right = (node.run(node.subgraph(name), (), f"{node.name}/{name}") for name in ("then_branch", "else_branch"))
    if node.builder.has_since(first, "while", most=MOST_TURNS):
        # Loops over a sequence end with it. Any other one may terminate only if the condition holds.
        node.fail(f"a branch has a loop of computed turns, and the condition is computed{node.advice(condition)}")
    if len(left) != len(right):
        node.invalid(f"its branches give {len(left)} and {len(right)} values")
    return [_either(node, condition, *pair) for pair in zip(left, right, strict=True)]


def _either(node: Node, condition: Tensor, left: Held, right: Held) -> Held:
    if left is right:
        return left
    if isinstance(left, Items | Nothing) or isinstance(right, Items | Nothing):
        node.fail(f"a branch gives a value that is not a tensor, and the condition is computed{node.advice(condition)}")
    one, other = (value if isinstance(value, Tensor) else node.parameter(value) for value in (left, right))
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        advice = node.advice(condition)
        node.fail(f"its branches give {shown(one)} and {shown(other)}, and the condition is computed{advice}")
    return build.where(condition, one, other)


def loop(node: Node) -> list[Held]:
    """Loop: unrolled if the number of turns and every condition are known, otherwise a loop of the graph."""
    body = node.subgraph("body")
    carried = [node.held(place) for place in range(2, len(node.inputs))]
    begun, collects = carried, len(body.output) - 1 > len(carried)
    is_of_tensors = not any(isinstance(held, Items | Nothing) for held in carried)
    if (
        is_of_tensors
        and not collects
        and any(node.has(place) and isinstance(node.value(place), Tensor) for place in (0, 1))
    ):
        return computed_loop(node, body, begun)
    most = node.known_integer(0) if node.has(0) else MAX_TURNS + 1
    # Without an initial condition, the conditions of the turns are ignored.
    is_asked = node.has(1)
    goes_on = not is_asked or _flag(node, node.host(1))
    scanned: list[list[Value]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    turn = 0
    while goes_on and turn < most:
        if turn == MAX_TURNS:
            node.fail(f"it takes more than {MAX_TURNS} turns, or has no end")
        given: list[Held] = [np.asarray(turn, np.int64), np.asarray(True), *carried]
        first, *results = node.run(body, given, f"{node.name}/{turn}")
        if is_asked:
            condition = node.as_value(first, "the condition of a turn")
            if isinstance(condition, Tensor):
                # Nothing reads the turns unrolled so far.
                return computed_loop(node, body, begun)
            goes_on = _flag(node, condition)
        carried = _collected(node, scanned, carried, results)
        turn += 1
    return [*carried, *(_stacked(node, collected, 0) for collected in scanned)]


def scan(node: Node) -> list[Held]:
    """Scan: the body for all elements along the scanned axes at once, or unrolled if their extent is known."""
    if node.opset < 9:
        node.fail("the batches of opset 8 are not supported")
    body, count = node.subgraph("body"), node.integer("num_scan_inputs")
    values = [node.value(place) for place in range(len(node.inputs))]
    inputs = values[len(values) - count :]
    carried: list[Held] = [*values[: len(values) - count]]
    outputs = len(body.output) - len(carried)
    axes = node.integers("scan_input_axes", [0] * count)
    backwards = node.integers("scan_input_directions", [0] * count)
    output_axes = node.integers("scan_output_axes", [0] * outputs)
    output_backwards = node.integers("scan_output_directions", [0] * outputs)
    if not inputs:
        node.invalid("nothing is scanned")
    extents = {value.shape[axis] for value, axis in zip(inputs, axes, strict=True)}
    extent = extents.pop()
    if extents:
        node.invalid(f"the scanned axes have the extents {sorted(map(str, {extent, *extents}))}")
    if not any((*axes, *backwards, *output_backwards)):
        found = at_once(node, body, values[: len(values) - count], inputs)
        if found is not None:
            moved = [build.moveaxis(value, -1, axis) for value, axis in zip(found, output_axes, strict=True)]
            return [*carried, *moved]
    if not isinstance(extent, int) or extent > MAX_TURNS:
        node.fail(f"the scanned axis has {extent} elements, which depends on symbols, or is more than {MAX_TURNS}")
    scanned: list[list[Value]] = [[] for _ in range(outputs)]
    for turn in range(extent):
        here = [
            _element(value, axis, extent - 1 - turn if back else turn)
            for value, axis, back in zip(inputs, axes, backwards, strict=True)
        ]
        results = node.run(body, [*carried, *here], f"{node.name}/{turn}")
        carried = _collected(node, scanned, carried, results)
    ordered = [list(reversed(each)) if back else each for each, back in zip(scanned, output_backwards, strict=True)]
    return [*carried, *(_stacked(node, each, axis) for each, axis in zip(ordered, output_axes, strict=True))]


def _collected(
    node: Node, scanned: Sequence[list[Value]], carried: Sequence[Held], results: Sequence[Held]
) -> list[Held]:
    """The loop-carried values of a turn; its other outputs are collected."""
    for collected, result in zip(scanned, results[len(carried) :], strict=True):
        collected.append(node.as_value(result, "what is collected of a turn"))
    return list(results[: len(carried)])


def _flag(node: Node, condition: Value) -> bool:
    if isinstance(condition, Tensor) or condition.size != 1:
        node.invalid("a condition is one flag")
    return bool(condition.reshape(())[()])


def _element(value: Value, axis: int, position: int) -> Value:
    if isinstance(value, Tensor):
        place = axis % value.rank
        return value[tuple(position if own == place else slice(None) for own in range(value.rank))]
    return np.asarray(np.take(value, position, axis))


def _stacked(node: Node, values: Sequence[Value], axis: int) -> Value:
    if not values:
        node.fail("a loop of 0 turns collects nothing, and the shape of its result is unknown")
    known: list[Host] = [value for value in values if not isinstance(value, Tensor)]
    if len(known) == len(values):
        return np.stack(known, axis)
    tensors = [value if isinstance(value, Tensor) else node.parameter(value) for value in values]
    return stack(tensors, axis)


OPERATORS: dict[str, Callable[[Node], Sequence[Held]]] = {"If": if_, "Loop": loop, "Scan": scan}
