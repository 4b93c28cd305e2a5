"""Values that depend on parameters alone: separate kernels compute them once, when the parameters are bound."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf

from tensorkiln import expr
from tensorkiln.canonical.rename import dims_of
from tensorkiln.expr import Dim

from ..loops.contraction import is_exact_widening
from ..values import Function, Value, users_of
from .costs import LITERAL, MOVEMENT

_FREE_ELEMENTS = 65536
"""A value with at most so many elements is kept even if it is larger than the parameters it is computed from."""


_LEAST_WIDENING = 2
"""How many times as large as its narrow operands a matrix is at least that is computed where it is read."""
_MOST_WIDENING = 16
"""Most values that are computed there for an element, among them movement: a dequantisation has about 10."""
_STEADY = frozenset({"reshape", "permute", "expand", "detach", "fuse"})
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
    return frozenset(prepared - _widened_where_read(live, prepared))


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


def _widened_where_read(live: Sequence[Value], prepared: Collection[Value]) -> set[Value]:
    """Prepared values that the product of a vector and a matrix computes from narrower ones, such as weights of a byte.

    Such a product reads each element once, so memory limits it, and not arithmetic.
    """
    users = users_of(live)
    least = _least_bytes(live, prepared)
    found: set[Value] = set()
    for value in live:
        is_product = value.kind == "binop" and value.text("op") == "mul" and value not in prepared
        if is_product and any(user.kind == "reduce_axis" for user in users[value]):
            for factor in value.operands:
                *moved, matrix = _moved(factor)
                is_matrix = matrix in prepared and _elements(matrix) == _elements(value)
                if is_matrix and least.get(matrix, inf) * _LEAST_WIDENING <= matrix.dtype.itemsize:
                    chain = _widened_from(matrix, least).union(moved)
                    is_alone = all(user in chain or user not in prepared for each in chain for user in users[each])
                    if is_alone and len(chain) <= _MOST_WIDENING:
                        found |= chain
    return found


def _least_bytes(live: Sequence[Value], prepared: Collection[Value]) -> dict[Value, int]:
    """Bytes to read for an element of each prepared value, if the arithmetic behind it may run where it is read: its
    own or, if these are fewer, those of the values that it is computed from.
    """
    found: dict[Value, int] = {}
    for value in live:
        if value in prepared:
            own = value.dtype.itemsize
            found[value] = min(own, _behind(value, found)) if _is_widening(value) else own
    return found


def _behind(value: Value, least: Mapping[Value, int]) -> int:
    return sum(least.get(operand, operand.dtype.itemsize) for operand in _as_large(value))


def _widened_from(matrix: Value, least: Mapping[Value, int]) -> set[Value]:
    """The values to compute where the matrix is read."""
    found: set[Value] = set()
    stack = [matrix]
    while stack:
        value = stack.pop()
        if value not in found and value in least and _is_widening(value) and _behind(value, least) <= least[value]:
            found.add(value)
            stack.extend(_as_large(value))
    return found


def _is_widening(value: Value) -> bool:
    """Whether the value may be part of a dequantisation."""
    is_plain = value.kind == "binop" and value.text("op") in ("add", "sub", "mul")
    return is_plain or value.kind == "cast" or value.kind in _STEADY


def _moved(value: Value) -> list[Value]:
    """The value and those behind movement ops that keep each element once, to the last one."""
    found = [value]
    while value.kind in _STEADY and _as_large(value):
        (value,) = value.operands
        found.append(value)
    return found


def _as_large(value: Value) -> list[Value]:
    """The operands with as many elements; others are expanded, such as scales."""
    return [operand for operand in value.operands if _elements(operand) == _elements(value)]


def _elements(value: Value) -> Dim:
    return expr.product(value.shape)


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
    elements = _known_elements(value)
    room = sum(map(_known_elements, parameters))
    # Numbers of less than a byte take a byte each once they are unpacked.
    bits = sum(8 * parameter.dtype.itemsize * _known_elements(parameter) for parameter in parameters)
    return elements <= max(_FREE_ELEMENTS, room) or elements * value.dtype.bits <= bits


def _known_elements(value: Value) -> int:
    elements = _elements(value)
    assert isinstance(elements, int), "what is prepared has a static shape"
    return elements
