"""Emit scalar programs on vectors: the values of neighbouring points of one loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from dialect.mlir import arith, ir, scf, vector
from passes import scalar
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, substitute, symbol

from ..loops.index_space import linear_form
from ..loops.scalar_dag import (
    Apply,
    Condition,
    Constant,
    IndexValue,
    InRange,
    Interner,
    IsTrue,
    Load,
    Node,
    depends_on,
)
from ..scalar.form import form_of
from ..scalar.number import literal
from ..scalar.registers import stored_type, to_register, to_scalar, zero
from ..scalar.traits import Traits
from ..to_linalg.node_writer import NodeWriter
from ..to_linalg.scalar_ops import emit_scalar, operation_of
from .emission import Emitter
from .index_emission import IndexEmitter
from .memory import Memory, strided_view

WORD = DType.INT32
"""The dtype of offsets between the lanes of a vector."""


class VectorEmitter(NodeWriter):
    """Emits nodes at the current insertion point, each once, for consecutive points of a loop that begin at `index`.

    `along` is the name of the loop, in which all indices are linear with constant steps, and the number of lanes. Only
    the first `points` of these exist (None: all). Loads and stores take at most `register` bytes. `loaded` has known
    values of loads, by `id`. The program must have no 16-bit floats, and no bools in memory.
    """

    def __init__(
        self,
        nodes: Interner,
        memory: Memory,
        traits: Traits,
        along: tuple[str, int],
        points: Dim | None,
        index: IndexEmitter,
        register: int,
        loaded: Mapping[int, ir.Value] | None = None,
    ) -> None:
        super().__init__(nodes, index, loaded or {})
        self.memory, self.traits, self.index, self.register = memory, traits, index, register
        self.loop, self.lanes = along
        self.points: Dim = self.lanes if points is None else points
        self.mask = None if points is None else self._first(points)
        self._scalars = Emitter(nodes, index, memory, traits)
        self._in_parts: dict[int, list[VectorEmitter]] = {}

    def store(self, dtype: DType, value: ir.Value, view: ir.Value, places: Sequence[int]) -> None:
        """Store the points that exist of a vector of `dtype` in a view, from the element at `places` on."""
        *outer, first = places
        for number, part in enumerate(self._parts(dtype)):
            start = number * part.lanes
            own = value if part is self else vector.ShuffleOp(value, value, range(start, start + part.lanes)).result
            at = [self.index(place) for place in (*outer, first + start)]
            if part.mask is None:
                vector.StoreOp(own, view, at)
            else:
                vector.MaskedStoreOp(view, at, part.mask, own)

    def _parts(self, dtype: DType) -> list[VectorEmitter]:
        """Emitters for parts of the vector, of which each takes at most a register of `dtype`.

        LLVM splits wider vectors and, with AVX2, their masks. If it finds only then that a part has no points, LLVM 22
        may replace its mask by ones, whose sign bits are 0, take these for true, and load the part without a mask.
        """
        lanes = min(self.register // dtype.itemsize, self.lanes)
        if lanes == self.lanes:
            return [self]
        if lanes not in self._in_parts:
            self._in_parts[lanes] = [self._part(start, lanes) for start in range(0, self.lanes, lanes)]
        return self._in_parts[lanes]

    def _part(self, start: int, lanes: int) -> VectorEmitter:
        # Another emitter of indices, since an inner one must not rebind a name: in the part, the loop's index is
        # `start` more.
        before = {self.loop: expr.sub(symbol(self.loop), start)}
        points = None if self.mask is None else expr.sub(substitute(self.points, before), start)
        names = {**self.index.names, self.loop: self.index(expr.add(symbol(self.loop), start))}
        index = IndexEmitter(self.index.space, names) if start else self.index
        return VectorEmitter(self.nodes, self.memory, self.traits, (self.loop, lanes), points, index, self.register)

    def _write(self, node: Node) -> ir.Value:
        if depends_on(node, self.loop, self.nodes):
            return super()._write(node)
        if isinstance(node, Constant):
            return literal(form_of(node.dtype).over(self.lanes), node.value).value
        return self._spread(self._scalars(node))

    def _index_value(self, node: IndexValue) -> ir.Value:
        line = self._line(node.index, self._step(node.index), DType.INT64)
        return scalar.cast(DType.INT64, node.dtype, line, traits=self.traits)

    def _apply(self, node: Apply) -> ir.Value:
        args = [to_scalar(arg.dtype, self(arg)) for arg in node.args]
        return to_register(node.dtype, emit_scalar(operation_of(node), args, self.traits))

    def _zero(self, dtype: DType) -> ir.Value:
        return self._spread(zero(dtype))

    def _kind(self, element: ir.Type) -> ir.Type:
        return ir.VectorType.get([self.lanes], element)

    def _spread(self, value: ir.Value) -> ir.Value:
        return vector.BroadcastOp(self._kind(value.type), value).result

    def _first(self, points: Dim) -> ir.Value:
        """A mask of the first `points` lanes."""
        return vector.CreateMaskOp(self._kind(ir.IntegerType.get_signless(1)), [self.index(points)]).result

    def _step(self, dim: Dim) -> int:
        """The step of an index from one point to the next."""
        form = linear_form(dim, [self.loop])
        assert form is not None, "indices are linear in the loop"
        (step,) = form[1]
        assert isinstance(step, int), "steps are known"
        return step

    def _line(self, start: Dim, step: int, dtype: DType) -> ir.Value:
        """`start + step * lane`, as integers of `dtype`."""
        element = stored_type(dtype)
        lane = arith.index_cast(self._kind(element), vector.StepOp(self._kind(ir.IndexType.get())).result)
        if step != 1:
            lane = arith.muli(lane, self._spread(arith.index_cast(element, self.index(step))))
        return arith.addi(self._spread(arith.index_cast(element, self.index(start))), lane)

    def _load(self, node: Load) -> ir.Value:
        parts = self._parts(node.dtype)
        if parts == [self]:
            return self._at_once(node)
        first, second = (part(node) for part in parts)
        return vector.ShuffleOp(first, second, range(self.lanes)).result

    def _at_once(self, node: Load) -> ir.Value:
        """Load a vector of at most a register. Conditions that are the same for all points become a branch."""
        conditions = _dims(node.conditions)
        alike = [condition for condition in conditions if self._step(condition) == 0]
        if not alike:
            return self._under_masks(node)
        rest = tuple(condition for condition in conditions if self._step(condition) != 0)
        branch = scf.IfOp(self._all(alike), [self._kind(stored_type(node.dtype))], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            along, index = (self.loop, self.lanes), self.index.inside({})
            points = None if self.mask is None else self.points
            inside = VectorEmitter(self.nodes, self.memory, self.traits, along, points, index, self.register)
            scf.YieldOp([inside._under_masks(replace(node, conditions=rest))])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp([self._zero(node.dtype)])
        return branch.results[0]

    def _under_masks(self, node: Load) -> ir.Value:
        """Load a vector under conditions that differ between its points."""
        address = self.memory.address(node.operand, node.address)
        step = self._step(address)
        if step == 2 and all(self._step(condition) % 2 == 0 for condition in _dims(node.conditions)):
            return self._every_second(node, address)
        mask = self._all(node.conditions, self.mask) if node.conditions else self.mask
        if step == 1:
            return self._run(node, address, mask)
        if mask is None:
            mask = self._spread(arith.constant(ir.IntegerType.get_signless(1), 1))
        whole = strided_view(self.memory.bases[node.operand], 0, (1 << 31,), (1,), self.index)
        offsets, kind = self._line(0, step, WORD), self._kind(stored_type(node.dtype))
        return vector.GatherOp(kind, whole, [self.index(address)], offsets, mask, self._zero(node.dtype)).result

    def _run(self, node: Load, address: Dim, mask: ir.Value | None) -> ir.Value:
        """Load contiguous elements."""
        view = strided_view(self.memory.bases[node.operand], address, (self.lanes,), (1,), self.index)
        kind, first = self._kind(stored_type(node.dtype)), self.index(0)
        if mask is None:
            return vector.LoadOp(kind, view, [first]).result
        return vector.MaskedLoadOp(kind, view, [first], mask, self._zero(node.dtype)).result

    def _every_second(self, node: Load, address: Dim) -> ir.Value:
        """Load every second element by two contiguous loads; a condition that holds at both ends holds in between."""
        halves: list[ir.Value] = []
        for start in (0, self.lanes):
            mask = self._first(expr.sub(expr.mul(self.points, 2), start + 1))
            for condition in _dims(node.conditions):
                step = self._step(condition) // 2
                mask = arith.andi(mask, self._from(expr.add(condition, start * step), step))
            halves.append(self._run(node, expr.add(address, start), mask))
        return vector.ShuffleOp(*halves, [2 * lane for lane in range(self.lanes)]).result

    def _all(self, conditions: Sequence[Condition], known: ir.Value | None = None) -> ir.Value:
        """Where all conditions hold, and `known` too: one flag for all points if no condition depends on the loop."""
        flags = [self._condition(condition) for condition in conditions]
        alike = [flag for flag in flags if not isinstance(flag.type, ir.VectorType)]
        lanes = [flag for flag in flags if isinstance(flag.type, ir.VectorType)]
        if known is not None:
            lanes.append(known)
        if not alike:
            return reduce(arith.andi, lanes)
        one = reduce(arith.andi, alike)
        return reduce(arith.andi, lanes, self._spread(one)) if lanes else one

    def _write_condition(self, condition: Condition) -> ir.Value:
        (dim,) = _dims([condition])
        step = self._step(dim)
        if step == 0:
            return arith.cmpi(arith.CmpIPredicate.sge, self.index(dim), self.index(0))
        return self._from(dim, step)

    def _from(self, start: Dim, step: int) -> ir.Value:
        """Where `start + step * lane` is nonnegative."""
        is_at_least = arith.CmpIPredicate.sge
        largest = self.index.space.largest
        is_small = max(largest(start), largest(expr.neg(start))) < 1 << 30
        dtype = WORD if is_small else DType.INT64
        return arith.cmpi(is_at_least, self._line(start, step, dtype), self._spread(zero(dtype)))


def _dims(conditions: Sequence[Condition]) -> list[Dim]:
    """Conditions on indices; the program has no others."""
    assert not any(isinstance(condition, InRange | IsTrue) for condition in conditions), "nothing is read from data"
    return [condition for condition in conditions if not isinstance(condition, InRange | IsTrue)]
