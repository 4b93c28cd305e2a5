"""A stage as linalg on memrefs: one `linalg.generic` over the loops inside a row, or straight-line code without loops.

Reads that are linear in those loops become strided operands with projected identity maps; all others are computed in
the body from `linalg.index`. So movement costs only a stride, and a mask only a guarded load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from dialect.mlir import arith, ir, linalg, memref, scf
from passes.scalar.traits import Traits
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, free_symbols

from ..loops.accesses import Access, linear_access, loads
from ..loops.body import Stage
from ..loops.domain import Loop, extent_of, is_window
from ..loops.index_space import linear_form
from ..loops.scalar_dag import Apply, Interner, Load, Node, walk
from ..origins import at_stage
from ..scalar.registers import from_memory, register_type, stored_type, to_memory
from ..schedule.nests import PLAIN, Strip
from ..to_linalg.write_kernel import iterator_types
from .accumulation import Accumulation, LikelyMaximum, Maximum, accumulation_of, combined, identity
from .column_emission import ColumnEmitter
from .emission import Emitter, Reciprocals
from .index_emission import IndexEmitter
from .memory import Memory, register, strided_view
from .row_facts import NO_FACTS, RowFacts
from .steady_divisors import steady_divisors, with_reciprocals
from .strip_emission import StripEmitter

LEAST_LIKELY: Final = 64
"""Least values of a maximum for which a fast loop pays, with a second loop for the uncertain cases."""
MOST_REPEATED: Final = 4
"""Most operations per value for which both loops pay."""


class StageEmitter:
    """Emits the stages of one kernel for the current row, at the current insertion point."""

    def __init__(self, nodes: Interner, memory: Memory, traits: Traits, facts: RowFacts = NO_FACTS) -> None:
        self.nodes, self.memory, self.traits, self.facts = nodes, memory, traits, facts

    def __call__(self, stage: Stage, loops: Sequence[Loop], index: IndexEmitter, strip: Strip | None = None) -> None:
        """Emit `stage`; `loops` are those inside the row, outermost first, and `strip` the one in masked vectors."""
        with at_stage(self.nodes, stage):
            if strip is not None:
                emitter = StripEmitter if is_window(loops) else ColumnEmitter
                emitter(self.nodes, self.memory, self.traits, strip.lanes)(stage, loops, strip.loop, index)
            elif stage.combine is None:
                self._map(stage, loops, index)
            elif any(not loop.is_reduction for loop in loops):
                self._columns(stage, loops, index)
            else:
                self.keep(self.reduced(stage, loops, index), stage, index)

    def body(
        self,
        index: IndexEmitter,
        loaded: Mapping[int, ir.Value] | None = None,
        reciprocals: Reciprocals | None = None,
    ) -> Emitter:
        """An emitter of scalars at the current insertion point."""
        return Emitter(self.nodes, index, self.memory, self.traits, loaded, reciprocals, self.facts)

    def _map(self, stage: Stage, loops: Sequence[Loop], index: IndexEmitter) -> None:
        if not loops:
            self.body(index).store(stage)
            return
        divisors = steady_divisors(stage, loops, self.nodes) if self.traits.has_fma else ()
        if divisors:
            with_reciprocals(divisors, self.body(index), lambda found, here: self._points(stage, loops, here, found))
        else:
            self._points(stage, loops, index)

    def _points(
        self, stage: Stage, loops: Sequence[Loop], index: IndexEmitter, reciprocals: Reciprocals | None = None
    ) -> None:
        targets = [self.target(stage.domain.address, entry.operand, loops, index) for entry in stage.stores]
        with Generic(self, stage.elements, loops, targets, [index], reciprocals) as ((emitter,), _):
            stored = zip(stage.stores, emitter.stored(stage), strict=True)
            linalg.yield_([to_memory(entry.root.dtype, value) for entry, value in stored])

    def reduced(self, stage: Stage, loops: Sequence[Loop], index: IndexEmitter) -> ir.Value:
        """The reduction over all points of `loops`, which are reduction loops."""
        (value,) = self.reduced_together(stage, loops, [index])
        return value

    def reduced_together(self, stage: Stage, loops: Sequence[Loop], rows: Sequence[IndexEmitter]) -> list[ir.Value]:
        """The reductions over all points of `loops`, which are reduction loops, for each of `rows`, in one loop."""
        with at_stage(self.nodes, stage):
            return self._reduced(stage, loops, rows)

    def _reduced(self, stage: Stage, loops: Sequence[Loop], rows: Sequence[IndexEmitter]) -> list[ir.Value]:
        assert stage.combine is not None, "only a reduction is reduced"
        (entry,) = stage.stores
        accumulation = accumulation_of(stage.combine, entry.element.dtype, self.traits)
        if not isinstance(accumulation, Maximum) or not _is_worth_two(stage, loops, self.nodes):
            return [accumulation.result(held) for held in self._accumulated(stage, loops, rows, accumulation)]
        likely = LikelyMaximum(accumulation.dtype)
        found = self._accumulated(stage, loops, rows, likely)
        is_certain = reduce(arith.andi, map(likely.is_certain, found))
        branch = scf.IfOp(is_certain, [register_type(likely.dtype)] * len(rows), has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([likely.result(held) for held in found])
        with ir.InsertionPoint(branch.else_block):
            inside = [row.inside({}) for row in rows]
            scf.YieldOp([accumulation.result(held) for held in self._accumulated(stage, loops, inside, accumulation)])
        return list(branch.results)

    def _accumulated(
        self, stage: Stage, loops: Sequence[Loop], rows: Sequence[IndexEmitter], accumulation: Accumulation
    ) -> list[list[ir.Value]]:
        """The variables of each row after the loop."""
        (entry,) = stage.stores
        held: list[list[ir.Value]] = []
        for _ in rows:
            start = accumulation.start()
            held.append([register(self.memory.entry, value.type) for value in start])
            for variable, value in zip(held[-1], start, strict=True):
                memref.store(value, variable, [])
        targets = [Target(variable, ()) for variables in held for variable in variables]
        with Generic(self, stage.elements, loops, targets, rows) as (emitters, before):
            given = iter(before)
            parts = [[next(given) for _ in variables] for variables in held]
            added = [
                accumulation.added(part, emitter(entry.element)) for part, emitter in zip(parts, emitters, strict=True)
            ]
            linalg.yield_([value for values in added for value in values])
        return [[memref.load(variable, []) for variable in variables] for variables in held]

    def keep(self, value: ir.Value, stage: Stage, index: IndexEmitter) -> None:
        """Store the only result of a row."""
        with at_stage(self.nodes, stage):
            self.memory.store(stage, stage.stores[0], value, index)

    def _columns(self, stage: Stage, loops: Sequence[Loop], index: IndexEmitter) -> None:
        """Reduce many columns at once in memory, with the column loops innermost."""
        assert stage.combine is not None, "only a reduction is reduced"
        (entry,) = stage.stores
        dtype = entry.element.dtype
        columns = [loop for loop in loops if not loop.is_reduction]
        target = self.target(stage.domain.address, entry.operand, columns, index)
        with Generic(self, (), columns, [target], [index]):
            linalg.yield_([to_memory(dtype, identity(stage.combine, dtype))])
        ordered = [loop for loop in loops if loop.is_reduction] + columns
        shifted = Target(target.view, tuple(number + len(ordered) - len(columns) for number in target.axes))
        with Generic(self, stage.elements, ordered, [shifted], [index]) as ((emitter,), (before,)):
            value = combined(stage.combine, dtype, from_memory(dtype, before), emitter(entry.element), self.traits)
            linalg.yield_([to_memory(dtype, value)])

    def target(self, address: Dim, operand: int, loops: Sequence[Loop], index: IndexEmitter) -> Target:
        """The memory that the loops write: `address` of `operand`, which is linear in them."""
        form = linear_form(self.memory.address(operand, address), [loop.name for loop in loops])
        assert form is not None, "a stage stores at the row-major address of its own loops"
        extents = [loop.extent for loop in loops]
        view = strided_view(self.memory.bases[operand], form[0], extents, form[1], index)
        return Target(view, tuple(range(len(loops))))


def _is_worth_two(stage: Stage, loops: Sequence[Loop], nodes: Interner) -> bool:
    """Whether a reduction is long, and its values are cheap to compute twice."""
    points = extent_of(loops)
    applied = [node for node in walk(stage.elements, nodes) if isinstance(node, Apply)]
    is_plain = all((node.op, *node.attributes[:1]) in PLAIN for node in applied)
    return not (isinstance(points, int) and points < LEAST_LIKELY) and is_plain and len(applied) <= MOST_REPEATED


@dataclass(frozen=True, slots=True)
class Target:
    """A memref operand of a generic, and the loop of each of its dimensions."""

    view: ir.Value
    axes: tuple[int, ...]


class Generic:
    """A `linalg.generic` under construction, over the same loops of one row or of several at once.

    Entering it yields a body emitter for each row, and the current values of the outputs.
    """

    def __init__(
        self,
        stages: StageEmitter,
        elements: Sequence[Node],
        loops: Sequence[Loop],
        outputs: Sequence[Target],
        rows: Sequence[IndexEmitter],
        reciprocals: Reciprocals | None = None,
    ) -> None:
        self.stages, self.loops, self.rows, self.reciprocals = stages, loops, rows, reciprocals
        reads = self._linear_reads(elements)
        # The first row reads all of them; other rows share those whose address is the same.
        first = rows[0].names
        moved = [{name for name, value in row.names.items() if value is not first.get(name)} for row in rows]
        self.reads = [
            [
                read
                for read in reads
                if row is rows[0] or any(names & free_symbols(part) for part in (read.offset, *read.strides))
            ]
            for row, names in zip(rows, moved, strict=True)
        ]
        inputs = [self._operand(access, row) for row, own in zip(rows, self.reads, strict=True) for access in own]
        # Every loop needs an operand that defines its extent, even if no operand depends on it.
        covered = {axis for target in (*inputs, *outputs) for axis in target.axes}
        for axis in range(len(loops)):
            if axis not in covered:
                base = register(stages.memory.entry, stored_type(DType.INT8))
                inputs.append(Target(strided_view(base, 0, (loops[axis].extent,), (0,), rows[0]), (axis,)))
        written = {axis for output in outputs for axis in output.axes}
        operands = [*inputs, *outputs]
        op = linalg.GenericOp(
            [],
            [target.view for target in inputs],
            [target.view for target in outputs],
            ir.ArrayAttr.get([self._map(target.axes) for target in operands]),
            iterator_types(axis not in written for axis in range(len(loops))),
        )
        self.block = op.regions[0].blocks.append(*(ir.MemRefType(target.view.type).element_type for target in operands))
        self.output_count = len(outputs)
        self.point = ir.InsertionPoint(self.block)

    def _linear_reads(self, elements: Sequence[Node]) -> list[Access]:
        names = [loop.name for loop in self.loops]
        found: list[Access] = []
        for load in loads(elements, self.stages.nodes):
            if load.conditions:
                continue
            here = Load(load.dtype, load.operand, self.stages.memory.address(load.operand, load.address), ())
            access = linear_access(here, self.stages.nodes, names)
            if access is not None:
                found.append(Access(load, access.offset, access.strides))
        return sorted(found, key=lambda access: (access.load.operand, str(access.load.address)))

    def _operand(self, access: Access, row: IndexEmitter) -> Target:
        axes = tuple(number for number, stride in enumerate(access.strides) if stride != 0)
        extents, strides = [self.loops[axis].extent for axis in axes], [access.strides[axis] for axis in axes]
        base = self.stages.memory.bases[access.load.operand]
        return Target(strided_view(base, access.offset, extents, strides, row), axes)

    def _map(self, axes: Sequence[int]) -> ir.Attribute:
        dims = [ir.AffineExpr.get_dim(axis) for axis in axes]
        return ir.AffineMapAttr.get(ir.AffineMap.get(len(self.loops), 0, dims))

    def __enter__(self) -> tuple[list[Emitter], list[ir.Value]]:
        self.point.__enter__()
        names = {loop.name: linalg.IndexOp(axis).result for axis, loop in enumerate(self.loops)}
        arguments = list(self.block.arguments)
        given, loaded = iter(arguments), dict[int, ir.Value]()
        emitters: list[Emitter] = []
        for row, reads in zip(self.rows, self.reads, strict=True):
            loaded = {**loaded, **{id(read.load): from_memory(read.load.dtype, next(given)) for read in reads}}
            emitters.append(self.stages.body(row.inside(names), loaded, self.reciprocals))
        return emitters, arguments[len(arguments) - self.output_count :]

    def __exit__(self, *error: object) -> None:
        self.point.__exit__(*error)
