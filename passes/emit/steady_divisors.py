"""Replace divisors that are constant while a stage runs along its row by one reciprocal each, if that is exact.

Whether it is exact is known only at run time, so there are two loops, and a branch between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from math import frexp
from operator import and_
from typing import Final

from tensorkiln.expr import free_symbols

from ..loops.body import Stage
from ..loops.domain import Loop, extent_of
from ..loops.scalar_dag import Apply, Constant, Interner, Load, Node, indices, walk
from ..scalar.form import form_of
from ..scalar.number import Number
from ..scalar.reciprocal import Reciprocal
from .emission import Emitter, Reciprocals, is_float_division
from .index_emission import IndexEmitter
from .regions import branches

LEAST_POINTS: Final = 32
"""Least points of a loop for which a reciprocal and a branch pay."""


def steady_divisors(stage: Stage, loops: Sequence[Loop], nodes: Interner) -> tuple[Node, ...]:
    """The divisors of a stage's float divisions that do not depend on `loops`, if the loops are long."""
    points = extent_of(loops)
    if isinstance(points, int) and points < LEAST_POINTS:
        return ()
    varying = {loop.name for loop in loops} | set(nodes.dynamic)
    found = {
        id(node.args[1]): node.args[1]
        for node in walk(stage.elements, nodes)
        if isinstance(node, Apply) and is_float_division(node) and _is_steady(node.args[1], varying, nodes)
    }
    return tuple(found.values())


def _is_steady(divisor: Node, varying: Iterable[str], nodes: Interner) -> bool:
    if isinstance(divisor, Constant) and abs(frexp(divisor.value)[0]) == 0.5:
        return False  # a power of two: LLVM multiplies by its exact reciprocal
    return all(
        isinstance(node, Constant | Apply | Load)
        and not (isinstance(node, Load) and node.conditions)
        and all(free_symbols(dim).isdisjoint(varying) for dim in indices(node))
        for node in walk([divisor], nodes)
    )


def with_reciprocals(
    divisors: Sequence[Node], before: Emitter, emit: Callable[[Reciprocals, IndexEmitter], None]
) -> None:
    """Call `emit` in both branches of a condition: with the exact reciprocals of `divisors`, or with none.

    `before` emits code before the loop.
    """
    found = {id(node): Reciprocal.of(Number(before(node), form_of(node.dtype))) for node in divisors}
    is_exact = reduce(and_, (reciprocal.is_exact() for reciprocal in found.values()))
    for serve, region in branches(is_exact.value, before.index):
        with region as here:
            emit(found if serve else {}, here)
