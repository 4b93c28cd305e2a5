"""Index expressions as SSA values of type `index`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from dialect.mlir import arith, ir
from tensorkiln.expr import Dim

from ..loops.domain import Loop
from ..loops.index_space import IndexSpace

Division = Callable[[ir.Value, ir.Value], ir.Value]
"""`arith.divui` or `arith.remui`."""


class IndexEmitter:
    """Emits dims at the current insertion point; equal dims are emitted once in a block and the blocks inside it.

    `names` gives the SSA value of every symbol, loop index and run-time index that may occur. Inner emitters must not
    rebind a name.
    """

    def __init__(self, space: IndexSpace, names: Mapping[str, ir.Value], outer: IndexEmitter | None = None) -> None:
        self.space = space
        self.names = dict(names)
        self._memo: dict[Dim, ir.Value] = {}
        self._outer = outer

    def inside(self, names: Mapping[str, ir.Value]) -> IndexEmitter:
        """An emitter for a region of the current block, with additional `names`."""
        return type(self)(self.space, {**self.names, **names}, self)

    def at(self, loops: Sequence[Loop], flat: Dim) -> IndexEmitter:
        """An emitter for the point of `loops` at the row-major position `flat`."""
        places = self.space.unflatten(flat, [loop.extent for loop in loops])
        return self.inside({loop.name: self(place) for loop, place in zip(loops, places, strict=True)})

    def __call__(self, dim: Dim) -> ir.Value:
        """The SSA value of `dim`."""
        known = self._known(dim)
        if known is None:
            known = self._memo[dim] = self._emit(dim)
        return known

    def _known(self, dim: Dim) -> ir.Value | None:
        found = self._memo.get(dim)
        if found is None and self._outer is not None:
            return self._outer._known(dim)
        return found

    def _emit(self, dim: Dim) -> ir.Value:
        if isinstance(dim, int):
            return arith.constant(ir.IndexType.get(), dim)
        terms: list[ir.Value] = []
        for monomial, coefficient in dim.terms:
            factors = [self._atom(atom.op, atom.key, atom.args) for atom in monomial]
            if coefficient != 1 or not factors:
                factors.append(self(coefficient))
            terms.append(reduce(arith.muli, factors))
        return reduce(arith.addi, terms)

    def _atom(self, op: str, key: str, args: tuple[Dim, ...]) -> ir.Value:
        if op == "symbol":
            return self.names[key]
        if op in ("max", "min"):
            return reduce(arith.maxsi if op == "max" else arith.minsi, (self(arg) for arg in args))
        dividend, divisor = args
        is_plain = self.space.is_nonnegative(dividend) and self.space.is_positive(divisor)
        left, right = self(dividend), self._nonzero(divisor)
        if is_plain:
            divide = arith.divui if op in ("floordiv", "idiv") else arith.remui
            return self._divided(divide, dividend, divisor, left, right)
        if op == "idiv":
            return arith.divsi(left, right)
        if op == "mod":
            return arith.remsi(left, right)
        quotient = arith.floordivsi(left, right)
        return quotient if op == "floordiv" else arith.subi(left, arith.muli(quotient, right))

    def _divided(self, divide: Division, dividend: Dim, divisor: Dim, left: ir.Value, right: ir.Value) -> ir.Value:
        """The quotient or remainder of two nonnegative dims, given their values."""
        return divide(left, right)

    def _nonzero(self, divisor: Dim) -> ir.Value:
        """The divisor, or 1 if it is 0: no loop runs then, but the division may be hoisted out of the loop."""
        value = self(divisor)
        if self.space.is_positive(divisor):
            return value
        is_zero = arith.cmpi(arith.CmpIPredicate.eq, value, self(0))
        return arith.select(is_zero, self(1), value)
