"""A whole graph, node by node in the order of the list."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import CallTurnsError
from ..graph import Graph
from ..nodes import AnyNode, Kernel, Sink, While
from . import (
    binop,
    constants,
    contraction,
    conversion,
    custom,
    identity,
    indexing,
    memory,
    movement,
    multi,
    reduction,
    symbolic,
    threefry,
    unary,
    views,
)
from .call import check_constraints, check_inputs, check_symbols
from .precision import Array
from .scope import Evaluator, Scope

EVALUATORS: dict[type, Evaluator] = {
    **constants.EVALUATORS,
    **binop.EVALUATORS,
    **unary.EVALUATORS,
    **movement.EVALUATORS,
    **views.EVALUATORS,
    **reduction.EVALUATORS,
    **contraction.EVALUATORS,
    **indexing.EVALUATORS,
    **conversion.EVALUATORS,
    **symbolic.EVALUATORS,
    **identity.EVALUATORS,
    **multi.EVALUATORS,
    **threefry.EVALUATORS,
    **custom.EVALUATORS,
}


def evaluate(graph: Graph, /, *arrays: Any, **symbols: int | np.integer[Any]) -> tuple[Array, ...]:
    """The graph's outputs, fresh arrays in the order of `output_vars`.

    `arrays` are in the order of `input_vars`, exactly of the stated dtypes and shapes, and are not modified; every
    symbol is passed by name. CallBoundsError when a symbol is missing, unknown or out of bounds; CallInputError when
    the count, a dtype or a shape is wrong or the symbols violate a constraint of the graph; CallTurnsError when a loop
    takes more turns than it may.
    """
    values = check_symbols(graph.symbols, symbols)
    inputs = check_inputs(graph, arrays, values)
    check_constraints(graph.constraints, values)
    scope = Scope(graph.types, values, graph.symbols)
    with np.errstate(all="ignore"):
        for var, array in zip(graph.input_vars, inputs, strict=True):
            scope.define(var, array)
        for position, node in enumerate(graph.nodes):
            scope.pointer = f"/nodes/{position}"
            execute(node, scope)
        return tuple(scope.read(var).copy() for var in graph.output_vars)


def execute(node: AnyNode, scope: Scope) -> None:
    """Run one node: its value, or its effect on storage, into the scope."""
    if isinstance(node, Sink):
        return
    if isinstance(node, Kernel):
        _execute_kernel(node, scope)
    elif isinstance(node, While):
        _execute_while(node, scope)
    elif type(node) in memory.EFFECTS:
        memory.EFFECTS[type(node)](node, scope)
    else:
        assert node.out_var is not None, "only a sink has no out var"
        scope.define(node.out_var, EVALUATORS[type(node)](node, scope))


def _execute_kernel(kernel: Kernel, scope: Scope) -> None:
    """The node it wraps; a sink hands its i-th dependency on as the kernel's i-th output."""
    if not isinstance(kernel.ast, Sink):
        execute(kernel.ast, scope)
        return
    for out_var, dependency in zip(kernel.output_vars, kernel.ast.deps, strict=True):
        scope.define(out_var, scope.read(dependency))


def _execute_while(node: While, scope: Scope) -> None:
    """Turn by turn, each graph evaluated by itself."""
    condition, body = (Graph.of_region(region, scope.ranges) for region in (node.condition, node.body))
    values = [scope.read(var) for var in node.in_vars]
    turns = 0
    while evaluate(condition, *values, **scope.symbols)[0].item():
        if turns == node.most:
            raise CallTurnsError.beyond(node.most, [scope.pointer])
        turns += 1
        given = evaluate(body, *values, **scope.symbols)
        values = [*given, *values[len(given) :]]
    for var, value in zip(node.output_vars, values, strict=False):
        scope.define(var, value)
