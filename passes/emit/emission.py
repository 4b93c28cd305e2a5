"""Emit scalar programs as SSA: the body of a `linalg.generic`, or straight-line code without loops."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from dialect.mlir import arith, ir, memref, scf
from passes import scalar
from passes.scalar.traits import Traits
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, Expr, free_symbols

from ..loops.body import Stage
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
)
from ..origins import at_node
from ..scalar.form import form_of
from ..scalar.number import Number
from ..scalar.reciprocal import Reciprocal
from ..scalar.registers import constant, from_memory, stored_type, to_memory, to_register, to_scalar, zero
from ..to_linalg.scalar_ops import emit_scalar, operation_of
from .index_emission import IndexEmitter
from .memory import Memory, load, strided_view

Reciprocals = Mapping[int, Reciprocal]
"""Reciprocals of divisors, by the `id` of the divisor node."""
DIVIDED: Final = frozenset({DType.FLOAT32, DType.FLOAT64})


def is_float_division(node: Apply) -> bool:
    """Whether the node divides floats that are computed in their own precision."""
    return node.op == "binop" and node.attributes[0] in ("fdiv", "div") and node.dtype in DIVIDED


def _operands(division: Apply) -> tuple[int, int] | None:
    """The operands that the dividend and the divisor are loaded from."""
    match division.args:
        case (Load(operand=dividend, conditions=()), Load(operand=divisor, conditions=())):
            return dividend, divisor
        case _:
            return None


class Emitter:
    """Emits nodes at the current insertion point, each once. `loaded` has known values of loads, by `id`.

    A division by a divisor in `reciprocals` becomes a multiplication; `shares` are pairs of operands whose quotients
    are finite.
    """

    def __init__(
        self,
        nodes: Interner,
        index: IndexEmitter,
        memory: Memory,
        traits: Traits,
        loaded: Mapping[int, ir.Value] | None = None,
        reciprocals: Reciprocals | None = None,
        shares: AbstractSet[tuple[int, int]] = frozenset(),
    ) -> None:
        self.nodes, self.index, self.memory, self.traits = nodes, index, memory, traits
        self._reciprocals, self._shares = reciprocals or {}, shares
        self._values: dict[int, ir.Value] = dict(loaded or {})
        self._conditions: dict[int | Dim, ir.Value] = {}

    def __call__(self, node: Node) -> ir.Value:
        """The value of `node`, in its register type."""
        value = self._values.get(id(node))
        if value is None:
            with at_node(self.nodes, node):
                value = self._values[id(node)] = self._emit(node)
        return value

    def stored(self, stage: Stage) -> list[ir.Value]:
        """The values that the stage stores at this point.

        All elements are emitted in order, so that recursion is no deeper than one element.
        """
        for element in stage.elements:
            self(element)
        return [self(entry.element) for entry in stage.stores]

    def _emit(self, node: Node) -> ir.Value:
        match node:
            case Constant(dtype=dtype, value=literal):
                return constant(dtype, literal)
            case IndexValue(dtype=dtype, index=index):
                wide = arith.index_cast(ir.IntegerType.get_signless(64), self._index(index))
                return to_register(dtype, scalar.cast(DType.INT64, dtype, wide, traits=self.traits))
            case Load():
                return self._load(node)
            case Apply():
                return to_register(node.dtype, self._apply(node))
            case Guard(conditions=conditions, value=value):
                return arith.select(self._all(conditions), self(value), zero(node.dtype))
            case Choose(conditions=conditions, first=first, second=second):
                return arith.select(self._all(conditions), self(first), self(second))

    def _apply(self, node: Apply) -> ir.Value:
        if is_float_division(node) and (reciprocal := self._reciprocals.get(id(node.args[1]))):
            quotient = reciprocal.share if _operands(node) in self._shares else reciprocal.quotient
            return quotient(self.traits, Number(self(node.args[0]), form_of(node.dtype))).value
        args = [to_scalar(arg.dtype, self(arg)) for arg in node.args]
        return emit_scalar(operation_of(node), args, self.traits)

    def _index(self, index: Dim) -> ir.Value:
        for name in sorted(free_symbols(index)):
            if name in self.nodes.dynamic and name not in self.index.names:
                node = self.nodes.dynamic[name]
                self.index.names[name] = as_index(node.dtype, self(node))
        return self.index(index)

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

    def _all(self, conditions: tuple[Condition, ...]) -> ir.Value:
        value = self._condition(conditions[0])
        for condition in conditions[1:]:
            value = arith.andi(value, self._condition(condition))
        return value

    def _condition(self, condition: Condition) -> ir.Value:
        key = condition if isinstance(condition, int | Expr) else id(condition)
        value = self._conditions.get(key)
        if value is None:
            value = self._conditions[key] = self._emit_condition(condition)
        return value

    def _emit_condition(self, condition: Condition) -> ir.Value:
        match condition:
            case InRange(value=value, extent=extent):
                position = as_index(value.dtype, self(value))
                # A negative index is a huge unsigned one.
                return arith.cmpi(arith.CmpIPredicate.ult, position, self._index(extent))
            case IsTrue(value=value):
                return self(value)
            case _:
                return arith.cmpi(arith.CmpIPredicate.sge, self._index(condition), self.index(0))


def as_index(dtype: DType, value: ir.Value) -> ir.Value:
    """An integer scalar as an index, by its sign; a uint64 beyond the range of int64 becomes negative."""
    return (arith.index_cast if dtype.is_signed else arith.index_castui)(ir.IndexType.get(), value)
