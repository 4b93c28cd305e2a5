"""Sums of products for many columns at once, in memory: a vector times a matrix whose rows stream by.

Several rows of the matrix are taken for each load and store of a sum. A row begins far from the one before, so the
hardware does not expect it: the next ones are prefetched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dialect.mlir import ir, vector
from tensorkiln import expr
from tensorkiln.expr import Dim, free_symbols, substitute, symbol

from ..loops.accesses import loads
from ..loops.body import Stage
from ..loops.domain import Loop
from ..loops.index_space import linear_form
from ..loops.scalar_dag import Apply, Constant, Interner, Load, Node, depends_on, walk
from ..loops.substitution import Substitution
from ..scalar.registers import stored_type
from ..scalar.traits import Traits
from .accumulation import Product, identity, spread
from .emission import Emitter
from .index_emission import IndexEmitter
from .memory import CACHE_LINE, NEAREST_CACHE, Memory, prefetch, strided_view
from .regions import loop, nest
from .vector_emission import WORD, VectorEmitter

TERMS: Final = 8
"""Terms that are added for each load and store of a sum: the factors that all columns share stay in registers."""
VECTORS: Final = 4
"""Vectors of columns in an iteration: as bytes, those of a cache line."""

EmitVector = Callable[[int, "Dim | None", IndexEmitter], None]
"""Emits the vector with this number in an iteration, of whose columns the first few exist (None: all)."""


class ColumnEmitter:
    """Emits stages that sum products of floats, for vectors of `lanes` columns."""

    def __init__(self, nodes: Interner, memory: Memory, traits: Traits, lanes: int) -> None:
        self.nodes, self.memory, self.traits, self.lanes = nodes, memory, traits, lanes

    def __call__(self, stage: Stage, loops: Sequence[Loop], column: Loop, index: IndexEmitter) -> None:
        """Emit a stage over `loops`: reductions, and `column`, along which it stores contiguous sums."""
        *outer, last = (each for each in loops if each.is_reduction)
        (element,), space = stage.elements, index.space
        self._each(column, index, lambda _, points, here: self._clear(stage, column, points, here))
        with nest(outer, index) as (here,):
            groups, rest = expr.floordiv(last.extent, TERMS), expr.floormod(last.extent, TERMS)
            name = f"{last.name}_terms"
            if groups != 0:
                first = expr.mul(space.add(name, groups), TERMS)
                places = [{last.name: expr.add(first, step)} for step in range(TERMS)]
                terms = [Substitution(space, self.nodes, place, {})(element) for place in places]
                with loop(name, 0, groups, 1, here) as inside:
                    self._terms(stage, terms, column, name, inside)
            if rest != 0:
                with loop(last.name, expr.mul(groups, TERMS), last.extent, 1, here) as inside:
                    self._terms(stage, [element], column, last.name, inside)

    def _each(self, column: Loop, index: IndexEmitter, emit: EmitVector) -> None:
        """Loop over the columns: several whole vectors at a time, then one at a time, of which the last is masked."""
        block = VECTORS * self.lanes
        whole = expr.mul(expr.floordiv(column.extent, block), block)
        if whole != 0:
            name = f"{column.name}_vectors"
            index.space.add(name, column.extent)
            with loop(name, 0, expr.sub(column.extent, block - 1), block, index) as here:
                for number in range(VECTORS):
                    start = expr.add(symbol(name), number * self.lanes)
                    emit(number, None, here.inside({column.name: here(start)}))
        if whole != column.extent:
            with loop(column.name, whole, column.extent, self.lanes, index) as here:
                emit(0, expr.sub(column.extent, symbol(column.name)), here)

    def _clear(self, stage: Stage, column: Loop, points: Dim | None, index: IndexEmitter) -> None:
        dtype = stage.elements[0].dtype
        emit = self._points(column, points, index, {})
        emit.store(dtype, spread(identity("sum", dtype), self._vectors(stage)), self._sums(stage, index), [0])

    def _terms(self, stage: Stage, terms: Sequence[Node], column: Loop, name: str, index: IndexEmitter) -> None:
        """Add `terms` to the sums of all columns; `name` is the loop around them."""
        shared = self._shared(stage, terms, column, index)
        streams = self._streams(terms, column, name, index)

        def add(number: int, points: Dim | None, here: IndexEmitter) -> None:
            for load, ahead in streams:
                if number * self.lanes * load.dtype.itemsize % CACHE_LINE == 0:
                    view = strided_view(self.memory.bases[load.operand], ahead, (self.lanes,), (1,), here)
                    prefetch(view, NEAREST_CACHE, here)
            emit, view, first = self._points(column, points, here, shared), self._sums(stage, here), here(0)
            kind = self._vectors(stage)
            if emit.mask is None:
                total = vector.LoadOp(kind, view, [first]).result
            else:
                nothing = spread(identity("sum", terms[0].dtype), kind)
                total = vector.MaskedLoadOp(kind, view, [first], emit.mask, nothing).result
            product = Product(terms[0].dtype, None, self.traits)
            for term in terms:
                left, right = map(emit, _factors(term))
                total = product.added(left, right, total)
            emit.store(terms[0].dtype, total, view, [0])

        self._each(column, index, add)

    def _shared(self, stage: Stage, terms: Sequence[Node], column: Loop, index: IndexEmitter) -> Mapping[int, ir.Value]:
        """Vectors of the values that all columns share, by the `id` of their nodes."""
        emit, kinds = Emitter(self.nodes, index, self.memory, self.traits), self._vectors(stage)
        varying = {id(node) for node in walk(terms, self.nodes) if depends_on(node, column.name, self.nodes)}
        found: dict[int, ir.Value] = {}
        for node in walk(terms, self.nodes):
            for each in node.args if isinstance(node, Apply) and id(node) in varying else ():
                if id(each) not in varying and id(each) not in found and not isinstance(each, Constant):
                    found[id(each)] = spread(emit(each), kinds)
        return found

    def _streams(
        self, terms: Sequence[Node], column: Loop, name: str, index: IndexEmitter
    ) -> Sequence[tuple[Load, Dim]]:
        """The contiguous reads of the columns, and their addresses in the next iteration of the loop `name`."""
        found: list[tuple[Load, Dim]] = []
        for load in loads(terms, self.nodes):
            address = self.memory.address(load.operand, load.address)
            form = linear_form(address, [column.name])
            if form is None or form[1] != (1,) or load.conditions or name not in free_symbols(address):
                continue
            ahead = substitute(address, {name: expr.add(symbol(name), 1)})
            found.append((load, index.space.simplified(ahead)))
        return found

    def _sums(self, stage: Stage, index: IndexEmitter) -> ir.Value:
        (entry,) = stage.stores
        address = self.memory.address(entry.operand, stage.domain.address)
        return strided_view(self.memory.bases[entry.operand], address, (self.lanes,), (1,), index)

    def _vectors(self, stage: Stage) -> ir.VectorType:
        return ir.VectorType.get([self.lanes], stored_type(stage.elements[0].dtype))

    def _points(
        self, column: Loop, points: Dim | None, index: IndexEmitter, known: Mapping[int, ir.Value]
    ) -> VectorEmitter:
        along, register = (column.name, self.lanes), self.lanes * WORD.itemsize
        return VectorEmitter(self.nodes, self.memory, self.traits, along, points, index, register, known)


def _factors(term: Node) -> Sequence[Node]:
    assert isinstance(term, Apply), "a term is a product"
    return term.args
