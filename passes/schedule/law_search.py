"""Find the law by which a reduction depends on another one, from the form of its element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensorkiln.dtypes import DType

from ..loops.scalar_dag import Apply, Constant, Node
from .sweep_laws import Exponentials, Found, Law, Squares


@dataclass(frozen=True, slots=True)
class Reference:
    """A reduction of kind `combine` over `element`, that of stage `number`; `result` is its value for the whole row."""

    number: int
    combine: str
    element: Node
    result: Node


def law_of(
    combine: str, element: Node, references: Sequence[Reference], is_given: Callable[[Node], bool]
) -> Law | None:
    """The law of a reduction of `element`, or None if no law applies.

    `is_given` tells whether a node has the same value throughout a row.
    """
    for reference in references:
        law = (
            _squares(combine, element, reference, is_given)
            or _exponentials(combine, element, reference)
            or _found(combine, element, reference)
        )
        if law is not None:
            return law
    return None


def _args(node: Node | None, op: str, kind: str) -> tuple[Node, ...]:
    """The operands of `node` if it is an operation of that kind, else an empty tuple."""
    return node.args if isinstance(node, Apply) and (node.op, *node.attributes[:1]) == (op, kind) else ()


def _either_way(node: Node | None, kind: str) -> tuple[tuple[Node, Node], ...]:
    """The operands of `node` in both orders if it is a binary operation of that kind, else an empty tuple."""
    args = _args(node, "binop", kind)
    return ((args[0], args[1]), (args[1], args[0])) if args else ()


def _squares(combine: str, element: Node, reference: Reference, is_given: Callable[[Node], bool]) -> Law | None:
    value, factors = reference.element, _args(element, "binop", "mul")
    if {combine, reference.combine} != {"sum"} or len(set(map(id, factors))) != 1:
        return None
    for one, centre in _either_way(factors[0], "sub"):
        if one is value and value.dtype in _FLOATS and is_given(centre):
            return Squares(reference.number, value, centre)
    return None


def _exponentials(combine: str, element: Node, reference: Reference) -> Law | None:
    exponents = _args(element, "unary", "exp2")
    if combine != "sum" or reference.combine != "max" or not exponents or element.dtype not in _FLOATS:
        return None
    distance, factor = exponents[0], None
    for one, other in _either_way(distance, "mul"):
        if isinstance(other, Constant) and other.value > 0:
            distance, factor = one, other
    is_below = _args(distance, "binop", "sub") == (reference.element, reference.result)
    return Exponentials(reference.number, reference.element, factor) if is_below else None


def _found(combine: str, element: Node, reference: Reference) -> Law | None:
    branches = _args(element, "ternary", "where")
    if reference.combine != "max" or not branches:
        return None
    condition, here, elsewhere = branches
    is_count = combine == "sum" and here.dtype.is_integer
    if not isinstance(elsewhere, Constant) or not (combine == "max" or (is_count and elsewhere.value == 0)):
        return None
    value, is_none = reference.element, None
    for one, other in _either_way(condition, "or"):
        if _args(other, "binop", "cmpne") == (value, value):
            condition, is_none = one, other
    ends = _args(next(iter(_args(condition, "unary", "neg")), None), "binop", "cmpne")
    if ends not in ((value, reference.result), (reference.result, value)):
        return None
    return Found(reference.number, combine, value, here, elsewhere, is_none)


_FLOATS = (DType.FLOAT32, DType.FLOAT64)
