"""Find the law by which a reduction depends on another one, from the form of its element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tensorkiln.dtypes import DType

from ..loops.scalar_dag import Apply, Constant, Node
from .sweep_laws import Exponentials, Found, Law, Squares


@dataclass(frozen=True, slots=True)
class Reference:
    """A reduction of kind `combine` over `element`; `result` is its value for the whole row."""

    combine: str
    element: Node
    result: Node


@dataclass(frozen=True, slots=True)
class Search:
    """A reduction of kind `combine` over `element` that reads the result of stage `number`.

    `is_given` tells whether a node has the same value throughout a row.
    """

    combine: str
    element: Apply
    number: int
    reference: Reference
    is_given: Callable[[Node], bool]


def law_of(
    combine: str, element: Node, references: Mapping[int, Reference], is_given: Callable[[Node], bool]
) -> Law | None:
    """The law of a reduction of `element`, or None if no law applies."""
    if not isinstance(element, Apply):
        return None
    for number, reference in references.items():
        search = Search(combine, element, number, reference, is_given)
        for match in (_squares, _exponentials, _found):
            law = match(search)
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


def _squares(search: Search) -> Law | None:
    value = search.reference.element
    factors = _args(search.element, "binop", "mul")
    if {search.combine, search.reference.combine} != {"sum"} or len(set(map(id, factors))) != 1:
        return None
    for one, centre in _either_way(factors[0], "sub"):
        if one is value and value.dtype in _FLOATS and search.is_given(centre):
            return Squares(search.number, value, centre)
    return None


def _exponentials(search: Search) -> Law | None:
    reference, exponents = search.reference, _args(search.element, "unary", "exp2")
    if search.combine != "sum" or reference.combine != "max" or not exponents or search.element.dtype not in _FLOATS:
        return None
    distance, factor = exponents[0], None
    for one, other in _either_way(distance, "mul"):
        if isinstance(other, Constant) and other.value > 0:
            distance, factor = one, other
    is_below = _args(distance, "binop", "sub") == (reference.element, reference.result)
    return Exponentials(search.number, reference.element, factor) if is_below else None


def _found(search: Search) -> Law | None:
    reference, branches = search.reference, _args(search.element, "ternary", "where")
    if reference.combine != "max" or not branches:
        return None
    condition, here, elsewhere = branches
    is_count = search.combine == "sum" and here.dtype.is_integer
    if not isinstance(elsewhere, Constant) or not (search.combine == "max" or (is_count and elsewhere.value == 0)):
        return None
    value, is_none = reference.element, None
    for one, other in _either_way(condition, "or"):
        if _args(other, "binop", "cmpne") == (value, value):
            condition, is_none = one, other
    ends = _args(next(iter(_args(condition, "unary", "neg")), None), "binop", "cmpne")
    if ends not in ((value, reference.result), (reference.result, value)):
        return None
    return Found(search.number, search.combine, value, here, elsewhere, is_none)


_FLOATS = (DType.FLOAT32, DType.FLOAT64)
