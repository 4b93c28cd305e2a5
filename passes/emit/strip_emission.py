"""A stage in strips: vectors of neighbouring points along its last parallel loop, with its reductions inside.

A window is reduced in registers, and a condition that depends on the loop becomes a mask instead of a branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

from dialect.mlir import arith, ir, scf
from tensorkiln import expr
from tensorkiln.expr import Dim, free_symbols, symbol

from ..loops.accesses import loads
from ..loops.body import Stage
from ..loops.domain import Loop, extent_of
from ..loops.index_space import linear_form
from ..loops.scalar_dag import (
    Apply,
    Interner,
    Node,
    children,
    conditions_on_indices,
    depends_on,
    is_never_negative,
    walk,
)
from ..loops.substitution import where_all_hold
from ..scalar.registers import stored_type
from ..scalar.traits import Traits
from .accumulation import Accumulation, Maximum, NonnegativeMaximum, One, Product, accumulation_of, spread
from .arguments import is_same_place
from .index_emission import IndexEmitter
from .memory import Memory, strided_view
from .regions import branches, loop, nest
from .vector_emission import WORD, VectorEmitter

UNROLLED_TERMS: Final = 9
"""Most points of an unrolled window: expressions that depend on only some of its loops are then computed once."""
UNROLLED_VECTORS: Final = 8
"""Most vectors of a map that are written out: masks are constants then."""


class StripEmitter:
    """Emits stages in vectors of `lanes` points."""

    def __init__(self, nodes: Interner, memory: Memory, traits: Traits, lanes: int) -> None:
        self.nodes, self.memory, self.traits, self.lanes = nodes, memory, traits, lanes

    def __call__(self, stage: Stage, loops: Sequence[Loop], strip: Loop, index: IndexEmitter) -> None:
        """Emit a stage over `loops`, of which `strip` is the one in vectors."""
        outer = [loop for loop in loops if not loop.is_reduction and loop != strip]
        reduced = [loop for loop in loops if loop.is_reduction]
        if outer and not reduced and strip.extent == self.lanes:
            self._vectors(stage, outer, strip, index)
            return
        with nest(outer, index) as (here,):
            self._strips(stage, strip, reduced, here)

    def _vectors(self, stage: Stage, outer: Sequence[Loop], strip: Loop, index: IndexEmitter) -> None:
        """Emit a map with one vector for each point of the outer loops. Values that are the same for all points of the
        last of these are computed before it.
        """
        *around, last = outer
        with nest(around, index) as (before,):
            first = before.inside({strip.name: before(0)})
            emit = self._points(strip, None, first)
            steady = {id(node): emit(node) for node in self._steady(stage, last)}
            with nest([last], first) as (here,):
                self._stored(stage, strip, (), None, here, steady)

    def _steady(self, stage: Stage, last: Loop) -> list[Node]:
        """The largest expressions with loads that do not depend on a loop, nor on memory that the stage writes."""
        found: list[Node] = []
        seen: set[int] = set()
        left = list(stage.elements)
        while left:
            node = left.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if depends_on(node, last.name, self.nodes) or self._is_overwritten([node], stage):
                left.extend(children(node))
            elif loads([node], self.nodes):
                found.append(node)
        return found

    def _is_overwritten(self, elements: Sequence[Node], stage: Stage) -> bool:
        """Whether elements read memory that the stage writes, be it as another dtype."""
        bases = self.memory.bases
        return any(
            is_same_place(bases[load.operand], bases[entry.operand])
            for load in loads(elements, self.nodes)
            for entry in stage.stores
        )

    def _strips(self, stage: Stage, strip: Loop, reduced: Sequence[Loop], index: IndexEmitter) -> None:
        """Emit whole vectors, then the rest; if the extent is symbolic, masked vectors.

        The last vector of several ends at the end: it computes some points again, which takes less time than a masked
        store.
        """
        if not isinstance(strip.extent, int):
            with loop(strip.name, 0, strip.extent, self.lanes, index) as here:
                self._vector(stage, strip, reduced, expr.sub(strip.extent, symbol(strip.name)), here)
            return
        whole = strip.extent // self.lanes * self.lanes
        if stage.combine is None and whole <= UNROLLED_VECTORS * self.lanes:
            for start in range(0, whole, self.lanes):
                self._vector(stage, strip, reduced, None, index.inside({strip.name: index(start)}))
        elif whole:
            with loop(strip.name, 0, whole, self.lanes, index) as here:
                self._vector(stage, strip, reduced, None, here)
        if whole < strip.extent:
            # No point can be computed again if a result is in the memory of an operand.
            is_again = bool(whole) and not self._is_overwritten(stage.elements, stage)
            rest = index.inside({strip.name: index(strip.extent - self.lanes if is_again else whole)})
            self._vector(stage, strip, reduced, None if is_again else strip.extent - whole, rest)

    def _vector(
        self, stage: Stage, strip: Loop, reduced: Sequence[Loop], points: Dim | None, index: IndexEmitter
    ) -> None:
        """Emit a vector of points, of which the first `points` exist (None: all). Windows whose conditions hold
        everywhere have code without them.
        """
        least = self._least(stage, strip, reduced)
        if not least:
            self._stored(stage, strip, reduced, points, index)
            return
        holds = (arith.cmpi(arith.CmpIPredicate.sge, index(dim), index(0)) for dim in dict.fromkeys(least.values()))
        inside = where_all_hold(stage, least, index.space, self.nodes)
        for is_inside, region in branches(reduce(arith.andi, holds), index):
            with region as here:
                self._stored(inside if is_inside else stage, strip, reduced, points, here)

    def _least(self, stage: Stage, strip: Loop, reduced: Sequence[Loop]) -> dict[Dim, Dim]:
        """The least value in a window of each condition that is the same for all points of a vector."""
        found: dict[Dim, Dim] = {}
        names = [each.name for each in (strip, *reduced)]
        for node in walk(stage.elements, self.nodes) if reduced else ():
            for condition in conditions_on_indices(node):
                form = linear_form(condition, names)
                if form is None or not free_symbols(condition).isdisjoint(self.nodes.dynamic):
                    continue
                least, (along, *strides) = form
                lowest = [_lowest(stride, each.extent) for stride, each in zip(strides, reduced, strict=True)]
                if along == 0 and None not in lowest:
                    found[condition] = expr.add(least, *(each for each in lowest if each is not None))
        return found

    def _stored(
        self,
        stage: Stage,
        strip: Loop,
        reduced: Sequence[Loop],
        points: Dim | None,
        index: IndexEmitter,
        known: Mapping[int, ir.Value] | None = None,
    ) -> None:
        emit = self._points(strip, points, index, known)
        if stage.combine is None:
            for element in stage.elements:
                emit(element)
            values = [emit(entry.element) for entry in stage.stores]
        else:
            (element,) = stage.elements
            accumulation = self._accumulation(stage.combine, element, reduced)
            kind = ir.VectorType.get([self.lanes], stored_type(element.dtype))
            start = [spread(value, kind) for value in accumulation.start()]
            held = self._window(accumulation, element, strip, reduced, points, start, index)
            values = [accumulation.result(held)]
        for entry, value in zip(stage.stores, values, strict=True):
            address = self.memory.address(entry.operand, stage.domain.address)
            view = strided_view(self.memory.bases[entry.operand], address, (self.lanes,), (1,), index)
            emit.store(entry.root.dtype, value, view, [0])

    def _accumulation(self, combine: str, element: Node, reduced: Sequence[Loop]) -> Accumulation:
        found = accumulation_of(combine, element.dtype, self.traits)
        terms = extent_of(reduced)
        has_terms = isinstance(terms, int) and terms > 0
        if isinstance(found, Maximum) and has_terms and is_never_negative(element):
            return NonnegativeMaximum(element.dtype)
        return found

    def _window(
        self,
        accumulation: Accumulation,
        element: Node,
        strip: Loop,
        reduced: Sequence[Loop],
        points: Dim | None,
        before: Sequence[ir.Value],
        index: IndexEmitter,
    ) -> Sequence[ir.Value]:
        """The variables after the points of the reduction loops, which they were `before`."""
        if not reduced:
            emit = self._points(strip, points, index)
            if isinstance(element, Apply) and _is_sum_of_products(accumulation, element):
                left, right = map(emit, element.args)
                return [Product(element.dtype, None, self.traits).added(left, right, before[0])]
            return accumulation.added(before, emit(element))
        extent, terms = reduced[0].extent, extent_of(reduced)
        if isinstance(extent, int) and isinstance(terms, int) and terms <= UNROLLED_TERMS:
            for place in range(extent):
                here = index.inside({reduced[0].name: index(place)})
                before = self._window(accumulation, element, strip, reduced[1:], points, before, here)
            return before
        terms_left = scf.ForOp(index(0), index(extent), index(1), list(before))
        with ir.InsertionPoint(terms_left.body):
            here = index.inside({reduced[0].name: terms_left.induction_variable})
            inside = list(terms_left.inner_iter_args)
            if len(reduced) > 1 and _is_sum_of_products(accumulation, element):
                # Each line is a chain of multiply-adds of its own, so that lines overlap.
                kind = inside[0].type
                start = [spread(value, kind) for value in accumulation.start()]
                (line,) = self._window(accumulation, element, strip, reduced[1:], points, start, here)
                scf.YieldOp(accumulation.added(inside, line))
            else:
                scf.YieldOp(self._window(accumulation, element, strip, reduced[1:], points, inside, here))
        return list(terms_left.results)

    def _points(
        self, strip: Loop, points: Dim | None, index: IndexEmitter, known: Mapping[int, ir.Value] | None = None
    ) -> VectorEmitter:
        along, register = (strip.name, self.lanes), self.lanes * WORD.itemsize
        return VectorEmitter(self.nodes, self.memory, self.traits, along, points, index, register, known)


def _is_sum_of_products(accumulation: Accumulation, element: Node) -> bool:
    """Whether products of floats are summed in their own precision."""
    if not isinstance(accumulation, One) or accumulation.combine != "sum" or not isinstance(element, Apply):
        return False
    is_product = (element.op, *element.attributes[:1]) == ("binop", "mul")
    return is_product and element.dtype.is_float and not element.dtype.is_half


def _lowest(stride: Dim, extent: Dim) -> int | None:
    """The least value of `stride * index` for indices below `extent`; None if it is not known."""
    if not isinstance(stride, int):
        return None
    if stride >= 0:
        return 0
    return stride * (extent - 1) if isinstance(extent, int) else None
