"""Emit scalar programs as SSA: the body of a `linalg.generic`, or straight-line code without loops."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dialect.mlir import arith, ir, memref, scf
from passes import scalar
from passes.scalar.traits import Traits
from tensorkiln.dtypes import DType

from ..loops.body import Stage
from ..loops.scalar_dag import Apply, IndexValue, Interner, Load
from ..scalar.exp2 import exp2, normal_exp2
from ..scalar.form import form_of
from ..scalar.number import Number
from ..scalar.reciprocal import Reciprocal
from ..scalar.registers import from_memory, stored_type, to_memory, to_register, to_scalar, zero
from ..to_linalg.node_writer import NodeWriter
from ..to_linalg.scalar_ops import emit_scalar, operation_of
from .index_emission import IndexEmitter
from .memory import Memory, load, strided_view
from .row_facts import NO_FACTS, SINGLE_STEP, RowFacts, is_power

Reciprocals = Mapping[int, Reciprocal]
"""Reciprocals of divisors, by the `id` of the divisor node."""


def is_float_division(node: Apply) -> bool:
    """Whether the node divides floats that are computed in their own precision."""
    return node.op == "binop" and node.attributes[0] in ("fdiv", "div") and node.dtype in SINGLE_STEP


class Emitter(NodeWriter):
    """Emits nodes at the current insertion point, each once. `loaded` has known values of loads, by `id`.

    A division by a divisor in `reciprocals` becomes a multiplication; `facts` are those of the kernel's rows.
    """

    def __init__(
        self,
        nodes: Interner,
        index: IndexEmitter,
        memory: Memory,
        traits: Traits,
        loaded: Mapping[int, ir.Value] | None = None,
        reciprocals: Reciprocals | None = None,
        facts: RowFacts = NO_FACTS,
    ) -> None:
        super().__init__(nodes, index, loaded or {})
        self.index, self.memory, self.traits = index, memory, traits
        self._reciprocals, self._facts = reciprocals or {}, facts

    def stored(self, stage: Stage) -> list[ir.Value]:
        """The values that the stage stores at this point.

        All elements are emitted in order, so that recursion is no deeper than one element.
        """
        for element in stage.elements:
            self(element)
        return [self(entry.element) for entry in stage.stores]

    def store(self, stage: Stage) -> None:
        """Store what the stage computes at this point."""
        for entry, value in zip(stage.stores, self.stored(stage), strict=True):
            self.memory.store(stage, entry, value, self.index)

    def _index_value(self, node: IndexValue) -> ir.Value:
        wide = arith.index_cast(ir.IntegerType.get_signless(64), self._index(node.index))
        return to_register(node.dtype, scalar.cast(DType.INT64, node.dtype, wide, traits=self.traits))

    def _apply(self, node: Apply) -> ir.Value:
        if is_float_division(node) and (reciprocal := self._reciprocals.get(id(node.args[1]))):
            quotient = reciprocal.share if self._facts.is_share(node) else reciprocal.quotient
            share = quotient(self.traits, Number(self(node.args[0]), form_of(node.dtype)))
            return to_register(node.dtype, share.value)
        if is_power(node) and self._facts.is_at_most_one(node):
            exponent = Number(self(node.args[0]), form_of(node.dtype))
            power = normal_exp2 if self._facts.drops_denormals else partial(exp2, is_at_most_zero=True)
            return to_register(node.dtype, power(self.traits, exponent).value)
        args = [to_scalar(arg.dtype, self(arg)) for arg in node.args]
        return to_register(node.dtype, emit_scalar(operation_of(node), args, self.traits))

    def _load(self, node: Load) -> ir.Value:
        base = self.memory.bases[node.operand]
        address = self.memory.address(node.operand, node.address)
        if not node.conditions:
            self._index(address)
            return load(node.dtype, base, address, self.index)
        condition = self._all(node.conditions)
        self._index(address)
        branch = scf.IfOp(condition, [stored_type(node.dtype)], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([memref.load(strided_view(base, address, (), (), self.index), [])])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp([to_memory(node.dtype, zero(node.dtype))])
        return from_memory(node.dtype, branch.results[0])
