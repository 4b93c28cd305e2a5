"""Scalar programs on vectors: the values of neighbouring points of one loop at a time."""

from __future__ import annotations

from collections.abc import Sequence

from dialect.mlir import arith, ir, vector
from passes import scalar
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, free_symbols

from ..loops.index_space import linear_form
from ..loops.scalar_dag import (
    Apply,
    Choose,
    Condition,
    Constant,
    Guard,
    IndexValue,
    InRange,
    Interner,
    IsTrue,
    Load,
    Node,
    indices,
    walk,
)
from ..scalar.form import form_of
from ..scalar.number import literal
from ..scalar.registers import stored_type, zero
from ..scalar.traits import Traits
from ..to_linalg.scalar_ops import emit_scalar, operation_of
from .emission import Emitter
from .index_emission import IndexEmitter
from .memory import Memory, strided_view

WORD = DType.INT32
"""What offsets between the lanes of a vector are counted in."""


class VectorEmitter:
    """Emits nodes at the current insertion point, each once, for the points from that of `index` on along a loop.

    `along` is the name of the loop, in which all indices are linear with known steps, and how many points there are. A
    `mask` has those that exist. Floats of 16 bits and bools in memory are no elements of such a program.
    """

    def __init__(
        self,
        nodes: Interner,
        memory: Memory,
        traits: Traits,
        along: tuple[str, int],
        mask: ir.Value | None,
        index: IndexEmitter,
    ) -> None:
        self.nodes, self.memory, self.traits, self.mask, self.index = nodes, memory, traits, mask, index
        self.loop, self.lanes = along
        self._scalars = Emitter(nodes, index, memory, traits)
        self._values: dict[int, ir.Value] = {}
        self._flags: dict[Condition, ir.Value] = {}

    def __call__(self, node: Node) -> ir.Value:
        """The values of `node`."""
        value = self._values.get(id(node))
        if value is None:
            value = self._values[id(node)] = self._emit(node)
        return value

    def _emit(self, node: Node) -> ir.Value:
        if not any(self.loop in free_symbols(dim) for each in walk([node], self.nodes) for dim in indices(each)):
            if isinstance(node, Constant):
                return literal(form_of(node.dtype).over(self.lanes), node.value).value
            return self._spread(self._scalars(node))
        match node:
            case IndexValue(dtype=dtype, index=dim):
                return scalar.cast(DType.INT64, dtype, self._line(dim, DType.INT64), traits=self.traits)
            case Load():
                return self._load(node)
            case Apply():
                return emit_scalar(operation_of(node), [self(arg) for arg in node.args], self.traits)
            case Guard(conditions=conditions, value=value):
                return arith.select(self._all(conditions), self(value), self._spread(zero(node.dtype)))
            case Choose(conditions=conditions, first=first, second=second):
                return arith.select(self._all(conditions), self(first), self(second))
            case _:
                raise AssertionError("a constant does not depend on a loop")

    def _spread(self, value: ir.Value) -> ir.Value:
        return vector.BroadcastOp(ir.VectorType.get([self.lanes], value.type), value).result

    def _line(self, dim: Dim, dtype: DType) -> ir.Value:
        """The values of an index, integers of `dtype`."""
        form = linear_form(dim, [self.loop])
        assert form is not None, "indices are linear in the loop"
        (step,), element = form[1], stored_type(dtype)
        kind = ir.VectorType.get([self.lanes], element)
        lanes = vector.StepOp(ir.VectorType.get([self.lanes], ir.IndexType.get())).result
        lane = arith.index_cast(kind, lanes)
        if step != 1:
            lane = arith.muli(lane, self._spread(arith.index_cast(element, self.index(step))))
        return arith.addi(self._spread(arith.index_cast(element, self.index(dim))), lane)

    def _load(self, node: Load) -> ir.Value:
        address = self.memory.address(node.operand, node.address)
        form = linear_form(address, [self.loop])
        assert form is not None, "addresses are linear in the loop"
        element, base = stored_type(node.dtype), self.memory.bases[node.operand]
        kind = ir.VectorType.get([self.lanes], element)
        mask = self._all(node.conditions, self.mask) if node.conditions else self.mask
        nothing = self._spread(zero(node.dtype))
        (step,), first = form[1], self.index(0)
        if step == 1:
            view = strided_view(base, address, (self.lanes,), (1,), self.index)
            if mask is None:
                return vector.LoadOp(kind, view, [first]).result
            return vector.MaskedLoadOp(kind, view, [first], mask, nothing).result
        flags = ir.VectorType.get([self.lanes], ir.IntegerType.get_signless(1))
        mask = self._spread(arith.constant(ir.IntegerType.get_signless(1), 1)) if mask is None else mask
        assert mask.type == flags, "a flag for each lane"
        words = ir.VectorType.get([self.lanes], stored_type(WORD))
        lanes = vector.StepOp(ir.VectorType.get([self.lanes], ir.IndexType.get())).result
        offsets = arith.muli(
            arith.index_cast(words, lanes), self._spread(arith.index_cast(stored_type(WORD), self.index(step)))
        )
        whole = strided_view(base, 0, (1 << 31,), (1,), self.index)
        return vector.GatherOp(kind, whole, [self.index(address)], offsets, mask, nothing).result

    def _all(self, conditions: Sequence[Condition], known: ir.Value | None = None) -> ir.Value:
        """Where all conditions hold, and `known` too."""
        for condition in conditions:
            flags = self._holds(condition)
            known = flags if known is None else arith.andi(known, flags)
        assert known is not None, "there is a condition"
        return known

    def _holds(self, condition: Condition) -> ir.Value:
        flags = self._flags.get(condition)
        if flags is not None:
            return flags
        assert not isinstance(condition, InRange | IsTrue), "nothing is read from data"
        if self.loop not in free_symbols(condition):
            flags = self._spread(arith.cmpi(arith.CmpIPredicate.sge, self.index(condition), self.index(0)))
        else:
            is_small = self.index.space.largest(condition) < 1 << 30
            dtype = WORD if is_small else DType.INT64
            flags = arith.cmpi(arith.CmpIPredicate.sge, self._line(condition, dtype), self._spread(zero(dtype)))
        self._flags[condition] = flags
        return flags
