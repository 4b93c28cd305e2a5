"""The loads and stores of a kernel, each with the result of its bounds proof."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from dialect.locations import node_pointers
from dialect.mlir import ir
from passes.cpu import byte_tiles
from tensorkiln import expr
from tensorkiln.expr import Dim

from .facts import Facts
from .integers import EVALUATIONS, Integers, truths
from .lemmas import Lemmas
from .memory import Entries, Memory, Table, View, cast_view
from .scope import Scope

LOAD_STEPS, STORE_STEPS = 160, 3000
"""The most eliminations of a proof. More rarely help; stores get more, since all of them must be proven."""

Bounds = tuple[Sequence[Dim], Sequence[Dim]]
"""Lower bounds and upper bounds of an integer."""


@dataclass(frozen=True, slots=True)
class Access:
    """A load or store at element `address` of `buffer`, which has `elements`; `node` is the JSON Pointer of a node that
    the kernel computes. `is_proven`: `0 <= address < elements` whenever it runs."""

    kernel: str
    node: str
    buffer: str
    is_store: bool
    address: Dim
    elements: Dim
    is_proven: bool

    def __str__(self) -> str:
        kind = "store to" if self.is_store else "load of"
        return f"{self.kernel}: {kind} {self.buffer} at {self.address} of {self.elements} elements"


class Walk:
    """Analyses one kernel. `functions` are those that it may call, by name.

    Without `loads` only stores are recorded, since proofs of many loads are slow.
    """

    def __init__(
        self,
        kernel: str,
        functions: Mapping[str, Any],
        scope: Scope,
        integers: Mapping[str, Bounds],
        shared: Sequence[Dim],
        *,
        loads: bool = True,
    ) -> None:
        self.kernel, self.functions = kernel, functions
        self.facts = Facts(scope.ranges)
        self.integers = Integers(self.facts, scope, self._loaded)
        self._unproven: list[tuple[Access, Scope]] = []
        self.loads = loads
        self.stored: dict[str, list[Bounds]] = {}
        self._ranges = integers
        self._views: list[dict[Any, View]] = [{}]
        self._entries = Entries(self.facts)
        self._lanes: dict[int, Dim] = {}
        self._last: dict[str, tuple[Dim, int]] = {}
        self.shared = iter(shared)

    def bind_view(self, value: Any, view: View) -> None:
        self._views[-1][value] = view

    def bind_threads(self, threads: int, groups: Dim) -> None:
        """Declare the numbers of threads per work-group and of work-groups."""
        self.integers.named["nvvm.read.ptx.sreg.tid.x"] = self.facts.new([0], [threads - 1])
        self.integers.named["nvvm.read.ptx.sreg.ctaid.x"] = self.facts.new([0], [expr.sub(groups, 1)])

    def block(self, block: Any) -> None:
        """Analyse the operations of a block."""
        self._operations([op.operation for op in block.operations])

    def _operations(self, operations: Sequence[Any]) -> None:
        for number, operation in enumerate(operations):
            if operation.name == "arith.select" and isinstance(operation.results[0].type, ir.MemRefType):
                self._cases(operation.operands[0], operations[number + 1 :])
                return
            visit = VISITS.get(operation.name)
            if visit is not None:
                visit(self, operation)
            elif operation.name in EVALUATIONS and isinstance(operation.results[0].type, ir.IndexType):
                # Evaluate it here, so that all uses share one unknown.
                self.integers(operation.results[0])

    def _cases(self, condition: Any, rest: Sequence[Any]) -> None:
        """Analyse the operations after a choice of memory, once for each choice that is not excluded before."""
        chosen = self.integers.chosen
        if condition in chosen:
            self._operations(rest)
            return
        for case, facts in ((True, truths(self.integers, condition)), (False, ())):
            chosen[condition] = case
            with self.where(facts):
                self._operations(rest)
            del chosen[condition]

    @contextmanager
    def where(self, facts: Sequence[Dim], views: Mapping[Any, View] | None = None) -> Generator[None]:
        """Analyse a region that runs only if `facts` are nonnegative; its results are discarded at the end."""
        before = self.integers.enter(facts)
        self._views.append(dict(views or {}))
        yield
        self._views.pop()
        self.integers.leave(before)

    def view(self, value: Any) -> View:
        """The view of a memref value."""
        for known in reversed(self._views):
            if value in known:
                return known[value]
        made = self._views[-1][value] = self._view(value)
        return made

    def _view(self, value: Any) -> View:
        op = value.owner.operation
        match op.name:
            case "memref.reinterpret_cast":
                return cast_view(op, self.view(op.operands[0]), self.integers)
            case "builtin.unrealized_conversion_cast":
                return self.view(op.operands[0])
            case "arith.select":
                condition, true, false = op.operands
                return self.view(true if self.integers.chosen[condition] else false)
            case "memref.alloca":
                return View(Memory("a variable", expr.product(ir.MemRefType(value.type).shape)))
            case "memref.get_global":
                name = ir.FlatSymbolRefAttr(op.attributes["name"]).value
                return self._global(name, expr.product(ir.MemRefType(value.type).shape))
            case _:
                raise AssertionError(f"{op.name} makes no memory that a kernel addresses")

    def _global(self, name: str, elements: Dim) -> View:
        return View(Memory(f"shared memory {name}", elements))

    def access(self, op: Any, view: View, index: tuple[Dim, ...], *, is_store: bool) -> Dim:
        """Record an access of `view` at `index`; returns the address in the buffer."""
        address, elements = view.address(index), view.buffer.elements
        if is_store or self.loads:
            node = next(iter(node_pointers(op.location)), "")
            access = Access(self.kernel, node, view.buffer.name, is_store, address, elements, is_proven=False)
            self._unproven.append((access, self.integers.scope))
        return address

    def proven(self) -> list[Access]:
        """The accesses, in order, each with the result of its proof.

        The last come first: copies of one store are in the order of their addresses, and in the same scope those below
        a proven one need no proof of their own.
        """
        lemmas = Lemmas(self.facts)
        results = [
            lemmas.prove(
                scope,
                (access.address, expr.add(access.elements, -1, expr.neg(access.address))),
                STORE_STEPS if access.is_store else LOAD_STEPS,
            )
            for access, scope in reversed(self._unproven)
        ]
        return [
            replace(access, is_proven=is_proven)
            for (access, _), is_proven in zip(self._unproven, reversed(results), strict=True)
        ]

    def lane(self, kind: Any) -> Dim:
        """The unknown lane of a vector of this type."""
        (width,) = ir.VectorType(kind).shape
        if width not in self._lanes:
            self._lanes[width] = self.facts.new([0], [width - 1])
        return self._lanes[width]

    def _loaded(self, op: Any) -> Dim | None:
        """The value of an integer load; None if nothing is known."""
        memory, *indices = op.operands
        view = self.view(memory)
        table = view.buffer.table
        if table is not None:
            place = view.address(tuple(map(self.integers, indices)))
            if op.name == "vector.load":
                place = expr.add(place, self.integers.lane)
            if self.integers.holds(place) and self.integers.holds(expr.sub(table.last, place)):
                return self._entries.read(table, place)
        known = self._ranges.get(view.buffer.name)
        return None if known is None else self.facts.new(*known)

    def keep(self, view: View, address: Dim, value: Any) -> None:
        """Record the value of an integer store.

        A store at the index of a loop gives a table, other stores only bounds. Loads are assumed to read stored values.
        """
        if not isinstance(value.type, ir.IntegerType):
            return
        dim = self.integers(value)
        name = str(address)
        view.buffer.table = None
        if name in self._last:
            last, rank = self._last[name]
            # Only entries up to the last one are known.
            view.buffer.table = Table(name, last, dim, rank + 1)
            return
        lows = tuple(expr.neg(bound) for bound in self.integers.maxima(expr.neg(dim)))
        self.stored.setdefault(view.buffer.name, []).append((lows, self.integers.maxima(dim)))

    def loop_index(self, low: Dim, high: Dim, step: Dim) -> tuple[Dim, list[Dim]]:
        """The index of a loop, and the facts inside it."""
        integers = self.integers
        runs = expr.sub(expr.sub(high, 1), low)
        if not isinstance(step, int):
            index = self.facts.new([low], [expr.sub(high, 1)])
            return index, [runs]
        uppers = integers.quotients(runs, step) if step != 1 else [runs]
        count = self.facts.new([0], uppers)
        index = expr.add(low, expr.mul(step, count))
        if low == 0 and step == 1:
            self._last[str(count)] = runs, self.facts.unknowns[str(count)].rank
        return index, [runs, expr.sub(runs, expr.mul(step, count))] if step != 1 else [runs]


def _part_of_shared(walk: Walk, op: Any) -> None:
    """Bind the next array of the shared memory block; arrays are allocated in order."""
    walk.bind_view(op.results[0], View(Memory("shared memory", next(walk.shared))))


def _for(walk: Walk, op: Any) -> None:
    low, high, step = (walk.integers(operand) for operand in list(op.operands)[:3])
    index, facts = walk.loop_index(low, high, step)
    if walk.integers.holds(expr.sub(low, high)):
        facts = [-1]
    elif walk.integers.holds(low):
        facts += walk.integers.where_positive.get(str(high), [])
    block = op.regions[0].blocks[0]
    with walk.where(facts):
        walk.integers.bind(block.arguments[0], index)
        walk.block(block)


def _if(walk: Walk, op: Any) -> None:
    facts = truths(walk.integers, op.operands[0])
    for region, known in zip(op.regions, (facts, ()), strict=True):
        for block in region.blocks:
            with walk.where(known):
                walk.block(block)


def _generic(walk: Walk, op: Any) -> None:
    """Loops over all dimensions, each with the extent of the first operand that has it; accesses every operand."""
    maps = [ir.AffineMapAttr(entry).value for entry in ir.ArrayAttr(op.attributes["indexing_maps"])]
    views = [walk.view(operand) for operand in op.operands]
    extents: dict[int, Dim] = {}
    axes: list[tuple[int, ...]] = []
    for indexing, view in zip(maps, views, strict=True):
        places = tuple(ir.AffineDimExpr(result).position for result in indexing.results)
        axes.append(places)
        for place, size in zip(places, view.sizes, strict=True):
            extents.setdefault(place, size)
    indices = {place: walk.facts.new([0], [expr.sub(extent, 1)]) for place, extent in extents.items()}
    inputs, _ = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    block = op.regions[0].blocks[0]
    with walk.where([expr.sub(extent, 1) for extent in extents.values()]):
        for number, (places, view) in enumerate(zip(axes, views, strict=True)):
            walk.access(op, view, tuple(indices[place] for place in places), is_store=number >= inputs)
        for inner in block.operations:
            operation = inner.operation
            if operation.name == "linalg.index":
                walk.integers.bind(operation.results[0], indices[ir.IntegerAttr(operation.attributes["dim"]).value])
        walk.block(block)


def _load(walk: Walk, op: Any) -> None:
    memory, *indices = op.operands
    walk.access(op, walk.view(memory), tuple(map(walk.integers, indices)), is_store=False)


def _store(walk: Walk, op: Any) -> None:
    value, memory, *indices = op.operands
    view = walk.view(memory)
    address = walk.access(op, view, tuple(map(walk.integers, indices)), is_store=True)
    walk.keep(view, address, value)


def _vector_load(walk: Walk, op: Any) -> None:
    memory, *indices = op.operands
    _lanes(walk, op, walk.view(memory), indices, op.results[0].type, is_store=False)


def _vector_store(walk: Walk, op: Any) -> None:
    value, memory, *indices = op.operands
    _lanes(walk, op, walk.view(memory), indices, value.type, is_store=True)


def _lanes(walk: Walk, op: Any, view: View, indices: Sequence[Any], kind: Any, *, is_store: bool) -> None:
    places = [walk.integers(index) for index in indices]
    places[-1] = expr.add(places[-1], walk.lane(kind))
    walk.access(op, view, tuple(places), is_store=is_store)


def _masked_load(walk: Walk, op: Any) -> None:
    if not walk.loads:
        return
    memory, *indices, mask, _ = op.operands
    loaded = op.results[0]
    _masked(walk, loaded, mask, lambda: _lanes(walk, op, walk.view(memory), indices, loaded.type, is_store=False))


def _masked_store(walk: Walk, op: Any) -> None:
    memory, *indices, mask, value = op.operands
    _masked(walk, value, mask, lambda: _lanes(walk, op, walk.view(memory), indices, value.type, is_store=True))


def _gather(walk: Walk, op: Any) -> None:
    if not walk.loads:
        return
    memory, first, offsets, mask, _ = op.operands

    def access() -> None:
        walk.access(op, walk.view(memory), (expr.add(walk.integers(first), walk.integers(offsets)),), is_store=False)

    _masked(walk, op.results[0], mask, access)


def _masked(walk: Walk, moved: Any, mask: Any, access: Callable[[], None]) -> None:
    """Analyse an access of the lanes that `mask` enables."""
    integers = walk.integers
    outer = integers.lane
    integers.lane = walk.lane(moved.type)
    with walk.where([]), walk.where(truths(integers, mask)):
        access()
    integers.lane = outer


def _call(walk: Walk, op: Any) -> None:
    name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    body = walk.functions[name].regions[0]
    if not body.blocks:
        if name in TILE_MOVES:
            _move_tile(walk, op, is_store=name == byte_tiles.STORE)
        return  # an instruction of the target
    block = body.blocks[0]
    views: dict[Any, View] = {}
    dims: list[tuple[Any, Dim]] = []
    for argument, operand in zip(block.arguments, op.operands, strict=True):
        if isinstance(operand.type, ir.MemRefType):
            views[argument] = walk.view(operand)
        else:
            dims.append((argument, walk.integers(operand)))
    with walk.where([], views):
        for argument, dim in dims:
            walk.integers.bind(argument, dim)
        walk.block(block)


def _move_tile(walk: Walk, op: Any, *, is_store: bool) -> None:
    """Analyse the rows of a tile. Their address and distance must be those of the view that they are taken of."""
    _, address, distance = op.operands
    base, offset = address.owner.operation.operands[0].owner.operation.operands[0].owner.operation.operands
    view = walk.view(base.owner.operation.operands[0])
    between, one = view.strides
    assert one == 1
    assert walk.integers(distance) == expr.mul(between, byte_tiles.WORD_BYTES)
    assert walk.integers(offset) == expr.mul(view.offset, byte_tiles.WORD_BYTES)
    places = tuple(walk.facts.new([0], [expr.sub(size, 1)]) for size in view.sizes)
    walk.access(op, view, places, is_store=is_store)
    if is_store:
        view.buffer.table = None


TILE_MOVES = (byte_tiles.LOAD, byte_tiles.STORE)
VISITS: Mapping[str, Callable[[Walk, Any], None]] = {
    "memref.view": _part_of_shared,
    "scf.for": _for,
    "scf.if": _if,
    "linalg.generic": _generic,
    "memref.load": _load,
    "memref.store": _store,
    "memref.atomic_rmw": _store,
    "vector.load": _vector_load,
    "vector.store": _vector_store,
    "vector.maskedload": _masked_load,
    "vector.maskedstore": _masked_store,
    "vector.gather": _gather,
    "func.call": _call,
}
