"""Inference over the nodes in order: each rule gives a type, which must agree with the type that the graph states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..dtypes import DType
from ..errors import UnsupportedGraphError
from ..expr import ExprError, ExprLimitError
from ..nodes import AnyNode, Buffer, Kernel, Placeholder, Sink, While
from ..types import TensorType
from . import constants, conversion, elementwise, indexing, markers, memory, movement, program, reduction, views
from .definitions import Definitions
from .devices import place
from .inference import Inference
from .loops import require_few_nodes, while_types
from .scope import Scope
from .stated import StatedGraph
from .survey import survey

Rule = Callable[[Any, Scope], TensorType]

RULES: Final[dict[type[AnyNode], Rule]] = {
    **elementwise.RULES,
    **movement.RULES,
    **views.RULES,
    **memory.RULES,
    **constants.RULES,
    **reduction.RULES,
    **indexing.RULES,
    **conversion.RULES,
    **markers.RULES,
    **program.RULES,
}
"""The rule of every node kind but kernel and while."""

_DEFINING_MORE: Final = frozenset({Buffer, Placeholder, Kernel})


def infer(graph: StatedGraph, depth: int = 0) -> Inference:
    """The types of all vars of a structurally sound graph, nested in `depth` loops.

    Raises InvalidGraphError, UnsupportedGraphError and LimitExceededError, pointing at the node.
    """
    found = survey(graph)
    scope = Scope(graph.vars_metadata, frozenset(graph.input_vars), found.symbols)
    definitions = Definitions(scope, found)
    try:
        _walk(graph, scope, definitions, depth)
        _check_interface(graph, scope, definitions)
    except ExprLimitError as error:
        scope.over(error.limit, error.maximum, error.actual)
    except ExprError as error:
        message = f"a dimension is beyond what can be reasoned about: {error}"
        raise UnsupportedGraphError(message, pointers=[scope.pointer]) from error
    return Inference(place(graph, scope.types), scope.constraints, found.symbols)


def _walk(graph: StatedGraph, scope: Scope, definitions: Definitions, depth: int) -> None:
    is_counted = depth > 0
    types, metadata, repeated = scope.types, scope.metadata, definitions.repeated
    for index, node in enumerate(graph.nodes):
        scope.path = ("nodes", index)
        scope.node = node
        kind = type(node)
        if kind is While:
            if not is_counted:
                require_few_nodes(graph, scope)
                is_counted = True
            _while(node, scope, definitions, depth + 1)
            continue
        rule = RULES.get(kind)
        result = _kernel(node, scope, 1) if rule is None else rule(node, scope)
        var = node.out_var
        if var is None:
            continue
        stated = metadata.get(var)
        is_stated = stated is None or (stated.dtype is result.dtype and stated.shape == result.shape)
        if is_stated and var not in repeated and kind not in _DEFINING_MORE:
            types[var] = result
            continue
        definitions.define(node, var, result)
        if isinstance(node, Kernel):
            definitions.define_passed(node)


def _while(node: AnyNode, scope: Scope, definitions: Definitions, depth: int) -> None:
    """Each output has the type of the input that it replaces."""
    assert isinstance(node, While), "the caller has looked"
    for var, result in zip(node.output_vars, while_types(node, scope, infer, depth), strict=True):
        definitions.define(node, var, result)


def _kernel(node: AnyNode, scope: Scope, depth: int) -> TensorType:
    """A kernel has the type of the node it wraps; a sink passes its dependencies through."""
    assert isinstance(node, Kernel), "every other kind has a rule of its own"
    program.check_kernel(node, scope, depth)
    outer, inner = scope.path, node.ast
    scope.path, scope.node = (*outer, "ast"), inner
    if isinstance(inner, Kernel):
        result = _kernel(inner, scope, depth + 1)
    else:
        result = RULES[type(inner)](inner, scope)
        if isinstance(inner, Sink):
            result = scope.types[inner.deps[0]]
    scope.path, scope.node = outer, node
    scope.require_dtype(node.dtype, result.dtype)
    return result


def _check_interface(graph: StatedGraph, scope: Scope, definitions: Definitions) -> None:
    """Refuses vars that cannot be inputs or outputs."""
    scope.node = None
    seen: set[int] = set()
    for position, var in enumerate(graph.input_vars):
        scope.path = ("input_vars", position)
        if var not in definitions.placeholders and var not in definitions.buffers:
            scope.fail(f"the input var {var} is neither a placeholder nor a buffer")
        if var in seen:
            scope.fail(f"the input var {var} appears twice")
        seen.add(var)
        scope.require_storable(scope.types[var])
    for position, var in enumerate(graph.parameter_vars):
        scope.path = ("parameter_vars", position)
        if var not in seen:
            scope.fail(f"the parameter var {var} is not in input_vars, or appears twice")
        seen.remove(var)
    for position, var in enumerate(graph.output_vars):
        scope.path = ("output_vars", position)
        result = scope.types.get(var)
        if result is None:
            scope.fail(f"no node defines the output var {var}")
        if result.dtype is DType.UNIT:
            scope.fail(f"the output var {var} is unit, which has no value to return")
        scope.require_storable(result)
