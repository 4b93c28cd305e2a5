"""Replace divisors that are constant while a stage runs along its row by one reciprocal each, if that is exact.

Whether it is exact is known only at run time, so there are two loops, and a branch between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import reduce
from math import frexp
from operator import and_
from typing import Final

from tensorkiln.expr import free_symbols, substitute, symbol

from ..loops.body import KernelBody, Stage
from ..loops.domain import Loop, extent_of
from ..loops.scalar_dag import Apply, Constant, Interner, Load, Node, indices, walk
from ..scalar.form import form_of
from ..scalar.number import Number
from ..scalar.reciprocal import Reciprocal
from ..schedule.tiling import inner_loops
from .emission import DIVIDED, Emitter, Reciprocals, is_float_division
from .index_emission import IndexEmitter
from .regions import branches

Shares = AbstractSet[tuple[int, int]]
"""Pairs of operands: nonnegative numbers, and their sum, which is finite only if all of them are."""
LEAST_POINTS: Final = 32
"""Least points of a loop for which a reciprocal and a branch pay."""


def shares_of(body: KernelBody) -> Shares:
    """The exponentials of a row and their sum, as in a softmax; both are local operands of the kernel."""
    found: set[tuple[int, int]] = set()
    stages = {store.operand: stage for stage in body.stages for store in stage.stores}
    for stage in body.stages:
        if stage.combine != "sum" or not isinstance(load := stage.elements[-1], Load) or load.conditions:
            continue
        (entry,) = stage.stores
        of = stages.get(load.operand)
        if of is None or not (body.is_local(load.operand) and body.is_local(entry.operand)):
            continue
        powers, summed = inner_loops(body, of), inner_loops(body, stage)
        names = {loop.name: symbol(other.name) for loop, other in zip(summed, powers, strict=False)}
        is_whole = [loop.extent for loop in summed] == [loop.extent for loop in powers]
        is_same = substitute(load.address, names) == of.domain.address
        if is_whole and is_same and all(loop.is_reduction for loop in summed) and _is_power(of, load.operand):
            found.add((load.operand, entry.operand))
    return found


def _is_power(stage: Stage, operand: int) -> bool:
    """Whether a map stores powers of two in the operand."""
    element = next(store.element for store in stage.stores if store.operand == operand)
    is_exp2 = isinstance(element, Apply) and (element.op, element.attributes) == ("unary", ("exp2",))
    return stage.combine is None and is_exp2 and element.dtype in DIVIDED


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
