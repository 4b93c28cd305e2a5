"""The values to store without fusion: the result of every op that takes no more memory than its operands."""

from __future__ import annotations

from collections.abc import Sequence

from tensorkiln import expr

from ..loops.index_space import IndexSpace
from ..values import Function, Value


def values_apart(function: Function, live: Sequence[Value], in_memory: set[Value]) -> set[Value]:
    """The values that are no larger than all values in memory that they are computed from, taken together.

    `in_memory` are the values that are in memory anyway. The others are computed where they are read: an expanded
    operand; the product of two of them that a sum reads, which a matrix product would store as rows times columns times
    depth; and values of constants alone.
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
