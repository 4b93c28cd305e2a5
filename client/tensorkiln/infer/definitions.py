"""The defining node of each var: one node, or two for destination passing."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import InvalidGraphError
from ..expr import mul, sub
from ..nodes import AnyNode, Assign, Buffer, Kernel, Placeholder, Sink
from ..types import TensorType
from .scope import Scope, shape_text
from .survey import Survey


class Definitions:
    """Adds the types of vars to a scope.

    A var has one defining node, with three exceptions: a buffer before it that declares where the value goes; an assign
    whose target is its own `out_var`, a buffer; and placeholders that repeat an input.
    """

    def __init__(self, scope: Scope, survey: Survey) -> None:
        self.scope = scope
        self.repeated = survey.repeated
        self.placeholders: set[int] = set()
        self.buffers: set[int] = set()
        self._updatable = set(survey.updated_in_place)

    def define(self, node: AnyNode, var: int, result: TensorType) -> None:
        """Add `var`, which `node` defines with the inferred type `result`."""
        if var in self.repeated and not self._is_new(node, var, result):
            return
        self.require_stated(var, result)
        if isinstance(node, Placeholder):
            self.placeholders.add(var)
        elif isinstance(node, Buffer):
            self.scope.require_storable(result, "size_in_elements")
            self.buffers.add(var)
        self.scope.types[var] = result

    def _is_new(self, node: AnyNode, var: int, result: TensorType) -> bool:
        """Whether this definition of a repeated var sets its type; False for a repetition or a declaration."""
        scope = self.scope
        known, destination = scope.types.get(var), scope.destinations.get(var)
        if isinstance(node, Buffer):
            if known is not None or destination is not None:
                scope.fail(f"var {var} is defined twice; a buffer comes first, and once", "out_var")
            if var in self._updatable:
                return True
            scope.destinations[var] = result
            return False
        if destination is not None:
            self._fill(var, destination, result)
            return True
        if known is None:
            return True
        if isinstance(node, Placeholder) and var in self.placeholders and known is result:
            return False
        if var in self.buffers and var in self._updatable and _updates(node, var):
            self._updatable.discard(var)
            return False
        scope.fail(f"var {var} is defined twice", "out_var")

    def _fill(self, var: int, destination: TensorType, result: TensorType) -> None:
        """Refuses a node whose result does not fill the buffer that was declared for it."""
        del self.scope.destinations[var]
        if destination.dtype is not result.dtype:
            message = f"the buffer of var {var} holds {destination.dtype}, the node gives {result.dtype}"
            self.scope.fail(message, "dtype")
        declared, given = mul(*destination.shape), mul(*result.shape)
        low, high = self.scope.bounds(sub(declared, given))
        message = f"the buffer of var {var} has {declared} elements, the value {shape_text(result.shape)} has {given}"
        if not low <= 0 <= high:
            self.scope.fail(message, "out_var")
        if low < high:
            self.scope.unsupported(f"{message}: cannot prove that these are equal", "out_var")

    def require_stated(self, var: int, result: TensorType) -> None:
        """Refuses the node unless the metadata of `var`, if there is any, agrees with its inferred type."""
        stated = self.scope.metadata.get(var)
        if stated is None:
            return
        if stated.dtype is not result.dtype:
            message = f"the node gives var {var} the dtype {result.dtype}, vars_metadata says {stated.dtype}"
            raise InvalidGraphError(message, pointers=[self.scope.pointer, f"/vars_metadata/{var}/dtype"])
        message = f"var {var} has the inferred shape that vars_metadata states"
        self.scope.require_same_shape(result.shape, stated.shape, message)

    def define_passed(self, kernel: Kernel) -> None:
        """Add the outputs beyond the first of a kernel around a sink: each is one of its dependencies."""
        inner = innermost(kernel)
        if not isinstance(inner, Sink):
            return
        for output, dependency in zip(kernel.output_vars[1:], inner.deps[1:], strict=True):
            self.define(kernel, output, self.scope.types[dependency])


def innermost(node: AnyNode) -> AnyNode:
    """The innermost node that a kernel wraps; any other node itself."""
    while isinstance(node, Kernel):
        node = node.ast
    return node


def innermost_kinds(nodes: Iterable[AnyNode]) -> set[type[AnyNode]]:
    """The kinds that occur; a kernel counts as its innermost node."""
    nodes = tuple(nodes)
    kinds = set(map(type, nodes))
    return {type(innermost(node)) for node in nodes} if Kernel in kinds else kinds


def _updates(node: AnyNode, var: int) -> bool:
    inner = innermost(node)
    return isinstance(inner, Assign) and inner.target_var == var
