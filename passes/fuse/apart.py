"""What is stored when nothing is to be fused: the result of every op that takes no more memory than its operands do."""

from __future__ import annotations

from collections.abc import Sequence

from tensorkiln import expr

from ..loops.index_space import IndexSpace
from ..values import Function, Value


def values_apart(function: Function, live: Sequence[Value], in_memory: set[Value]) -> set[Value]:
    """The values that are no larger than all values in memory together that they are computed from.

    `in_memory` are those that are there anyway. What is left is computed where it is read: an expanded operand, and the
    product of two of them that a sum reads at once, which for a matrix product would take rows times columns times
    depth; and what is made of constants alone.
    """
    space = IndexSpace(function.symbols)
    stored: set[Value] = set()
    sources: dict[Value, frozenset[Value]] = {}
    for value in (*function.arguments, *live):
        behind = frozenset[Value]().union(*(sources[operand] for operand in value.operands))
        room = expr.add(0, *(expr.product(source.shape) for source in behind))
        if behind and space.is_nonnegative(expr.sub(room, expr.product(value.shape))):
            stored.add(value)
        sources[value] = frozenset({value}) if value in stored or value in in_memory else behind
    return stored
