"""Copy a block of an operand into panels by its tables, widening it on the way: one function per dtypes and shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

from dialect.mlir import arith, func, ir, memref, scf, vector
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import strided_view
from passes.emit.regions import branches, loop
from passes.emit.squares import transposed
from passes.loops.index_space import IndexSpace
from passes.scalar import cast
from passes.scalar.registers import stored_type, to_scalar
from passes.scalar.traits import Traits
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, symbol

from .machine import PAIR
from .narrow_products import WORD_BITS
from .offset_table import table_types
from .packing import Source
from .shared_functions import shared_function

SKIPS = 2
"""Distance of the elements of a run that one load takes with those between them: bytes, and words that stride."""
MASKED_BYTES = 32
"""Bytes of the narrowest vector with masked load instructions."""


@dataclass(frozen=True, slots=True)
class Panels:
    """The layout and dtype of packed elements.

    Inner entry `i` of outer entry `o` is at `o * outer stride + (i // tile) * panel + i % tile`, with `layout` being
    `(outer stride, tile, panel)`. They are stored `lanes` at a time.

    An element may hold several consecutive entries `together`, of the index `joined`, as integers of so many times
    fewer bits: strides then count elements. Loads can mask entries of `masked` bytes and more.
    """

    dtype: DType
    layout: tuple[int, int, int]
    lanes: int
    traits: Traits
    joined: Literal["inner", "outer"] = "inner"
    together: int = 1
    masked: int = WORD_BITS // 8

    @property
    def entries(self) -> int:
        """Inner entries in a vector."""
        return self.lanes * (self.together if self.joined == "inner" else 1)

    @property
    def outer(self) -> int:
        """Outer entries in an element."""
        return self.together if self.joined == "outer" else 1


def pack(
    module: ir.Operation,
    source: Source,
    memory: ir.Value,
    packed: ir.Value,
    tables: Sequence[ir.Value],
    counts: tuple[Dim, Dim, Dim],
    start: Dim,
    panels: Panels,
    index: IndexEmitter,
) -> None:
    """Pack a block, after its tables have been filled.

    `tables` are those of the outer index, then those of the inner one. `counts` are the outer entries, the inner ones,
    and the inner ones rounded up to whole tiles, which are filled with zeros. `start` is the inner part of the address
    of the first inner entry.
    """
    forms, inner = len(source.forms), source.inner_tables
    layout = "x".join(map(str, panels.layout))
    transposes = source.is_transposed and panels.together == 1
    how = "transposed" if transposes else f"{forms}_{inner}"
    size = source.dtype.itemsize
    is_masked = panels.masked == 1 if size == 1 else size == WORD_BITS // 8 and size * panels.lanes >= MASKED_BYTES
    skips = is_masked and source.step == SKIPS
    how += "_skipping" * skips
    name = f"pack_{source.dtype}_{panels.dtype}_{layout}_{how}_{panels.lanes}"
    if panels.together > 1:
        name += f"_{panels.joined}_{panels.together}"
    elements = [ir.MemRefType.get([], stored_type(dtype)) for dtype in (source.dtype, panels.dtype)]
    types = [*elements, *table_types(forms + inner), *[ir.IndexType.get()] * 4]

    def define(arguments: Sequence[ir.Value]) -> None:
        step = SKIPS if skips else 1
        _PackFunction(source.dtype, arguments, forms, inner, panels, step).define(transposes)

    shared_function(module, name, types, define)
    func.CallOp([], name, [memory, packed, *tables, *(index(dim) for dim in (*counts, start))])


class _PackFunction:
    def __init__(
        self, source: DType, arguments: Sequence[ir.Value], forms: int, inner: int, panels: Panels, step: int
    ) -> None:
        self.memory, self.packed, *rest = arguments
        self.outer_tables, self.inner_tables = rest[:forms], rest[forms : forms + inner]
        outer, entries, padded, start = rest[forms + inner :]
        self.names = {"outer_count": outer, "entries": entries, "padded": padded, "start": start}
        self.source, self.panels, self.lanes, self.step = source, panels, panels.entries, step
        self.word = ir.IntegerType.get_signless(WORD_BITS)
        self.inner: list[ir.Value] = []
        # LLVM makes a branch of each element that no load can mask.
        self.is_narrow = source.itemsize < panels.masked
        self.is_wide = source.itemsize >= WORD_BITS // 8

    def define(self, transposes: bool) -> None:
        """Copy vectors of inner elements, or transpose squares where outer elements are contiguous."""
        space = IndexSpace(dict.fromkeys(self.names, (0, 1 << 40)) | {"start": (-(1 << 40), 1 << 40)})
        for name in ("square", "outer", "place"):
            space.bound(name, 0, 1 << 40)
        index = IndexEmitter(space, self.names)
        rest: Dim = 0
        if transposes:
            rest = expr.mul(expr.floordiv(symbol("outer_count"), self.lanes), self.lanes)
            self._squares(rest, index)
        self._vectors(rest, symbol("outer_count"), index)

    def _vectors(self, first: Dim, last: Dim, index: IndexEmitter) -> None:
        """Copy the inner elements of these outer ones, a vector at a time.

        Where inner elements have tables, a vector of theirs is copied for all outer elements, before the next one.
        """
        count = expr.floordiv(last, self.panels.outer)
        if self.inner_tables:
            with loop("place", 0, symbol("padded"), self.lanes, index) as place:
                self.inner = [self._inner(table, place) for table in self.inner_tables]
                with loop("outer", first, count, 1, place) as here:
                    self._store([self._vector(each, here) for each in self._parts(here)], symbol("outer"), here)
            return
        with loop("outer", first, count, 1, index) as here:
            parts = self._parts(here)
            with loop("place", 0, symbol("padded"), self.lanes, here) as place:
                self._store([self._vector(each, place) for each in parts], symbol("outer"), place)

    def _parts(self, index: IndexEmitter) -> list[list[ir.Value]]:
        """The entries in all tables of each outer element in a packed one."""
        outer = self.panels.outer
        places = [expr.add(expr.mul(symbol("outer"), outer), number) for number in range(outer)]
        return [[self._part(table, place, index) for table in self.outer_tables] for place in places]

    def _squares(self, count: Dim, index: IndexEmitter) -> None:
        """Copy `count` outer elements, a vector of them at a time; padding of the last tile may repeat an element."""
        (table,) = self.outer_tables
        words = ir.VectorType.get([self.lanes], ir.MemRefType(table.type).element_type)
        with loop("square", 0, count, self.lanes, index) as here:
            first = self._part(table, symbol("square"), here)
            parts = vector.LoadOp(words, strided_view(table, symbol("square"), (self.lanes,), (1,), here), [here(0)])
            lanes = vector.StepOp(ir.VectorType.get([self.lanes], ir.IndexType.get())).result
            starts = arith.subi(parts.result, arith.index_cast(words, lanes))
            is_in = arith.cmpi(arith.CmpIPredicate.eq, starts, vector.BroadcastOp(words, first).result)
            for is_square, region in branches(_all(is_in), here):
                with region as inside:
                    if is_square:
                        with loop("place", 0, symbol("padded"), self.lanes, inside) as place:
                            self._square(first, is_in, place)
                    else:
                        self._vectors(symbol("square"), expr.add(symbol("square"), self.lanes), inside)

    def _part(self, table: ir.Value, outer: Dim, index: IndexEmitter) -> ir.Value:
        return memref.load(strided_view(table, outer, (), (), index), [])

    def _square(self, part: ir.Value, is_in: ir.Value, index: IndexEmitter) -> None:
        """Copy as many outer as inner elements: load along the outer ones, and transpose in registers.

        Narrow elements are widened before that: a register holds a whole row then. `is_in` has the lanes whose outer
        elements follow the first contiguously; the caller ensures that all do.
        """
        lanes = self.lanes
        kind = ir.VectorType.get([lanes], stored_type(self.source))
        flags = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
        zero = _zeros(kind)
        named = index.inside({"part": arith.index_cast(ir.IndexType.get(), part)})
        rows: list[ir.Value] = []
        for lane in range(lanes):
            place, entries = expr.add(symbol("place"), lane), symbol("entries")
            is_entry = arith.cmpi(arith.CmpIPredicate.ult, named(place), named(entries))
            nearest = expr.minimum(place, expr.sub(entries, 1))
            offset = arith.index_cast(ir.IndexType.get(), self._part(self.inner_tables[0], nearest, named))
            here = named.inside({"offset": offset})
            address = expr.add(symbol("part"), symbol("start"), symbol("offset"))
            view = strided_view(self.memory, address, (lanes,), (1,), here)
            if self.is_wide:
                mask = arith.andi(is_in, vector.BroadcastOp(flags, is_entry).result)
                rows.append(vector.MaskedLoadOp(kind, view, [here(0)], mask, zero).result)
                continue
            loaded = arith.select(is_entry, vector.LoadOp(kind, view, [here(0)]).result, zero)
            rows.append(self._packed([loaded]))
        for number, row in enumerate(transposed(rows)):
            packed = self._packed([row]) if self.is_wide else row
            self._store_packed(packed, expr.add(symbol("square"), number), index)

    def _vector(self, parts: Sequence[ir.Value], index: IndexEmitter) -> ir.Value:
        kind = ir.VectorType.get([self.lanes], stored_type(self.source))
        flags = ir.VectorType.get([self.lanes], ir.IntegerType.get_signless(1))
        mask = vector.CreateMaskOp(flags, [index(expr.sub(symbol("entries"), symbol("place")))]).result
        for number, part in enumerate(parts[1:], 1):
            mask = arith.andi(mask, self._holds(part, number, index))
        return self._elements(parts[0], kind, mask, _zeros(kind), index)

    def _store(self, loaded: Sequence[ir.Value], outer: Dim, index: IndexEmitter) -> None:
        """Store a vector of inner elements, or those of several outer ones together."""
        self._store_packed(self._packed(loaded), outer, index)

    def _store_packed(self, packed: ir.Value, outer: Dim, index: IndexEmitter) -> None:
        outer_stride, tile, panel = self.panels.layout
        quotient, lane = index.space.divide(symbol("place"), tile)
        lane = expr.floordiv(lane, self.lanes // self.panels.lanes)
        at = expr.add(expr.mul(outer, outer_stride), expr.mul(quotient, panel), lane)
        target = strided_view(self.packed, at, (self.panels.lanes,), (1,), index)
        vector.StoreOp(packed, target, [index(0)])

    def _packed(self, loaded: Sequence[ir.Value]) -> ir.Value:
        """A vector of elements as they are packed."""
        dtype, traits = self.panels.dtype, self.panels.traits
        together, words = self.panels.together, ir.VectorType.get([self.panels.lanes], self.word)
        is_inner = together > 1 and self.panels.joined == "inner"
        # A byte is as wide as a quarter of an element.
        narrow = dtype if not is_inner else DType.INT16 if together == PAIR else self.source
        values = [cast(self.source, narrow, to_scalar(self.source, each), traits=traits) for each in loaded]
        if together == 1:
            return values[0]
        if is_inner:
            return vector.BitCastOp(words, values[0]).result
        bits = WORD_BITS // together
        parts: list[ir.Value] = []
        for number, value in enumerate(values):
            low, shift = (
                vector.BroadcastOp(words, arith.constant(self.word, each)).result
                for each in ((1 << bits) - 1, number * bits)
            )
            parts.append(arith.shli(arith.andi(value, low), shift))
        return reduce(arith.ori, parts)

    def _elements(self, part: ir.Value, kind: ir.Type, mask: ir.Value, zero: ir.Value, index: IndexEmitter) -> ir.Value:
        first = arith.addi(arith.index_cast(ir.IndexType.get(), part), index(symbol("start")))
        if not self.inner_tables:
            named = index.inside({"part": first})
            view = strided_view(self.memory, expr.add(symbol("part"), symbol("place")), (self.lanes,), (1,), named)
            if not self.is_narrow:
                return vector.MaskedLoadOp(kind, view, [index(0)], mask, zero).result
            return _either(
                _all(mask),
                kind,
                lambda: vector.LoadOp(kind, view, [index(0)]).result,
                lambda: vector.MaskedLoadOp(kind, view, [index(0)], mask, zero).result,
            )
        offsets = self.inner[0]
        if self.is_narrow or (self.is_wide and self.step != 1):
            return self._in_one_run(first, offsets, kind, mask, zero, index)
        if self.is_wide and self.lanes * self.source.itemsize < MASKED_BYTES:
            return self._gathered(first, offsets, kind, mask, zero, index)
        return self._in_runs(first, offsets, kind, mask, zero, index)

    def _gathered(
        self, first: ir.Value, offsets: ir.Value, kind: ir.Type, mask: ir.Value, zero: ir.Value, index: IndexEmitter
    ) -> ir.Value:
        whole = strided_view(self.memory, 0, (1 << 31,), (1,), index)
        return vector.GatherOp(kind, whole, [first], offsets, mask, zero).result

    def _in_one_run(
        self, part: ir.Value, offsets: ir.Value, kind: ir.Type, mask: ir.Value, zero: ir.Value, index: IndexEmitter
    ) -> ir.Value:
        """A load if the elements are contiguous, or every other one, and all are needed; else a gather."""
        start, is_in = self._run_at(0, offsets)
        here = index.inside({"run": arith.addi(part, start)})

        def loaded() -> ir.Value:
            if self.step == 1:
                view = strided_view(self.memory, symbol("run"), (self.lanes,), (1,), here)
                return vector.LoadOp(kind, view, [here(0)]).result
            count = SKIPS * self.lanes
            flags = ir.VectorType.get([count], ir.IntegerType.get_signless(1))
            # What follows the last element may be outside of the operand.
            return self._every_other(kind, "run", vector.CreateMaskOp(flags, [here(count - 1)]).result, here)

        def gathered() -> ir.Value:
            return self._gathered(part, offsets, kind, mask, zero, index)

        return _either(_all(arith.andi(mask, is_in)), kind, loaded, gathered)

    def _run_at(self, lane: int, offsets: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Where the run begins that the element of a lane lies in, and which lanes are in it."""
        words = ir.VectorType.get([self.lanes], self.word)
        lanes = arith.index_cast(words, vector.StepOp(ir.VectorType.get([self.lanes], ir.IndexType.get())).result)
        if self.step != 1:
            lanes = arith.muli(lanes, vector.BroadcastOp(words, arith.constant(self.word, self.step)).result)
        starts = arith.subi(offsets, lanes)
        start = vector.ExtractOp(starts, [], [lane]).result
        is_in = arith.cmpi(arith.CmpIPredicate.eq, starts, vector.BroadcastOp(words, start).result)
        return arith.index_cast(ir.IndexType.get(), start), is_in

    def _in_runs(
        self, part: ir.Value, offsets: ir.Value, kind: ir.Type, mask: ir.Value, zero: ir.Value, index: IndexEmitter
    ) -> ir.Value:
        """Two masked loads if the elements lie in one or two runs, as in rows of windows; else a gather."""
        runs: list[tuple[ir.Value, ir.Value]] = []
        for lane in (0, self.lanes - 1):
            start, is_in = self._run_at(lane, offsets)
            runs.append((arith.addi(part, start), is_in))
        covered = arith.ori(*(is_in for _, is_in in runs))

        def loaded() -> ir.Value:
            values = zero
            for number, (start, is_in) in enumerate(runs):
                here = index.inside({f"run{number}": start})
                values = self._run(f"run{number}", arith.andi(mask, is_in), values, here)
            return values

        def gathered() -> ir.Value:
            return self._gathered(part, offsets, kind, mask, zero, index)

        return _either(_all(covered), kind, loaded, gathered)

    def _run(self, start: str, mask: ir.Value, otherwise: ir.Value, index: IndexEmitter) -> ir.Value:
        """The elements from `start` on, `step` apart, in the lanes of the mask; those of `otherwise` in the others."""
        if self.step == 1:
            view = strided_view(self.memory, symbol(start), (self.lanes,), (1,), index)
            return vector.MaskedLoadOp(otherwise.type, view, [index(0)], mask, otherwise).result
        flags = vector.InterleaveOp(mask, arith.xori(mask, mask)).result
        return arith.select(mask, self._every_other(otherwise.type, start, flags, index), otherwise)

    def _every_other(self, kind: ir.Type, start: str, flags: ir.Value, index: IndexEmitter) -> ir.Value:
        """Every other one of the elements from `start` on that have flags."""
        count = SKIPS * self.lanes
        both = ir.VectorType.get([count], ir.VectorType(kind).element_type)
        view = strided_view(self.memory, symbol(start), (count,), (1,), index)
        return vector.DeinterleaveOp(vector.MaskedLoadOp(both, view, [index(0)], flags, _zeros(both))).results[0]

    def _holds(self, part: ir.Value, number: int, index: IndexEmitter) -> ir.Value:
        """Where the outer and inner part of a condition add up to a nonnegative value."""
        kind = ir.VectorType.get([self.lanes], self.word)
        total = vector.BroadcastOp(kind, part).result
        if self.inner_tables:
            total = arith.addi(total, self.inner[number])
        zero = vector.BroadcastOp(kind, arith.constant(self.word, 0)).result
        return arith.cmpi(arith.CmpIPredicate.sge, total, zero)

    def _inner(self, table: ir.Value, index: IndexEmitter) -> ir.Value:
        kind = ir.VectorType.get([self.lanes], self.word)
        view = strided_view(table, symbol("place"), (self.lanes,), (1,), index)
        return vector.LoadOp(kind, view, [index(0)]).result


def _zeros(kind: ir.VectorType) -> ir.Value:
    element = kind.element_type
    return vector.BroadcastOp(kind, arith.constant(element, 0.0 if isinstance(element, ir.FloatType) else 0)).result


def _all(flags: ir.Value) -> ir.Value:
    return vector.ReductionOp(ir.IntegerType.get_signless(1), vector.CombiningKind.AND, flags).result


def _either(
    condition: ir.Value, kind: ir.Type, then: Callable[[], ir.Value], otherwise: Callable[[], ir.Value]
) -> ir.Value:
    choice = scf.IfOp(condition, [kind], has_else=True)
    for block, value in ((choice.then_block, then), (choice.else_block, otherwise)):
        with ir.InsertionPoint(block):
            scf.YieldOp([value()])
    return choice.results[0]
