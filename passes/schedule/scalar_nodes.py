"""Build scalar operations as nodes of a scalar program."""

from __future__ import annotations

from tensorkiln.dtypes import DType

from ..loops.scalar_dag import Interner, Node
from ..to_linalg.scalar_ops import COMBINE


class Scalars:
    """A builder of scalar operations."""

    def __init__(self, nodes: Interner) -> None:
        self.nodes = nodes

    def two(self, kind: str, left: Node, right: Node) -> Node:
        """`left kind right`, for operands of the same dtype; a comparison gives a bool."""
        dtype = DType.BOOL if kind in ("cmplt", "cmpne") else left.dtype
        return self.nodes.apply(dtype, "binop", (kind, left.dtype, right.dtype), left, right)

    def where(self, condition: Node, here: Node, elsewhere: Node) -> Node:
        """`here` if the condition holds, else `elsewhere`."""
        return self.nodes.apply(here.dtype, "ternary", ("where", condition.dtype), condition, here, elsewhere)

    def unary(self, kind: str, value: Node) -> Node:
        """`kind(value)`."""
        return self.nodes.apply(value.dtype, "unary", (kind,), value)

    def equal(self, left: Node, right: Node) -> Node:
        """Whether both values are equal; false for NaN."""
        return self.negated(self.two("cmpne", left, right))

    def cast(self, value: Node, dtype: DType) -> Node:
        """`value` converted to `dtype`."""
        return value if value.dtype is dtype else self.nodes.apply(dtype, "cast", (value.dtype,), value)

    def negated(self, condition: Node) -> Node:
        """Whether the condition does not hold."""
        return self.unary("neg", condition)

    def is_finite(self, value: Node) -> Node:
        """Whether a float is neither infinite nor NaN."""
        return self.equal(self.two("sub", value, value), self.nodes.zero(value.dtype))

    def together(self, combine: str, left: Node, right: Node) -> Node:
        """Two values combined by a reduction of this kind."""
        return self.nodes.apply(left.dtype, COMBINE, (combine,), left, right)
