"""Values that depend on parameters alone: separate kernels compute them once, when the parameters are bound."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tensorkiln import expr
from tensorkiln.canonical.rename import dims_of

from ..loops.contraction import is_exact_widening
from ..values import Function, Value
from .costs import LITERAL, MOVEMENT

_FREE_ELEMENTS = 65536
"""A value with at most so many elements is kept even if it is larger than the parameters it is computed from."""


_AT_EACH_CALL = frozenset({"custom", "copy", "while", "while_result", *LITERAL})


def prepared_values(function: Function, live: Sequence[Value]) -> frozenset[Value]:
    """The values that are the same at every call with the same parameters, whatever the symbols are.

    These include values of constants alone, which other prepared values may read. Host operations are never prepared: a
    custom one may have side effects at each call.
    """
    parameters = {parameter for parameter in function.parameters if _is_static(parameter)}
    if not parameters:
        return frozenset()
    literals: set[Value] = set()
    prepared = set(parameters)
    for value in live:
        if value.kind in ("const_scalar", "vconst"):
            literals.add(value)
            continue
        is_ours = bool(value.operands) and value.kind not in _AT_EACH_CALL
        if is_ours and all(each in literals or each in prepared for each in value.operands) and _is_static(value):
            prepared.add(value)
    return frozenset(prepared)


def stored_before(
    live: Sequence[Value], users: Mapping[Value, Sequence[Value]], prepared: Collection[Value], results: Sequence[Value]
) -> set[Value]:
    """The prepared values with arithmetic that unprepared values read, directly or through movement ops.

    A value of constants alone is as cheap where it is read. A value with many more elements than its parameters is left
    to the kernels that read it; so is an exact widening, which is free in a contraction.
    """
    if not prepared:
        return set()
    behind: dict[Value, frozenset[Value]] = {}
    stored: set[Value] = set()
    for value in live:
        if value in prepared:
            arguments = frozenset(operand for operand in value.operands if operand.kind == "argument")
            behind[value] = arguments.union(*(behind.get(operand, frozenset[Value]()) for operand in value.operands))
            is_read = value in results or any(user not in prepared for user in users[value])
            if is_read:
                stored |= {each for each in _computed(value) if each in prepared and _is_worth(each, behind[each])}
    return stored


def _is_static(value: Value) -> bool:
    return all(isinstance(dim, int) for dim in value.shape) and not any(dims_of(tuple(value.fields.values())))


def _computed(value: Value) -> list[Value]:
    """The values with arithmetic behind movement ops; `value` itself if it is no movement op."""
    found: list[Value] = []
    stack = [value]
    while stack:
        each = stack.pop()
        if each.kind in MOVEMENT:
            stack.extend(each.operands)
        elif each.kind not in ("argument", *LITERAL):
            found.append(each)
    return found


def _is_worth(value: Value, parameters: Collection[Value]) -> bool:
    if not parameters or (value.kind == "cast" and is_exact_widening(value.operands[0].dtype, value.dtype)):
        return False
    elements = expr.product(value.shape)
    most = expr.add(*(expr.product(parameter.shape) for parameter in parameters))
    assert isinstance(elements, int), "what is prepared has a static shape"
    return elements <= _FREE_ELEMENTS or (isinstance(most, int) and elements <= most)
