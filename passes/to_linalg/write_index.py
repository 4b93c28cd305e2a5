"""Write index expressions as `affine.apply`; what affine expressions cannot express is arith on index."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Final

from dialect.mlir import affine, arith, ir
from tensorkiln.expr import Atom, Dim, Expr, free_symbols

from ..loops.index_space import IndexSpace

_QUOTIENTS: Final = ("floordiv", "idiv")
_REMAINDERS: Final = ("floormod", "mod")
_TRUNCATING: Final = ("idiv", "mod")


class IndexWriter:
    """Writes dims at the current insertion point; equal dims are written once in a block.

    `names` gives the value of every name that occurs. The graph's `symbols` become symbols of affine maps; all other
    names become dims.
    """

    def __init__(self, space: IndexSpace, symbols: frozenset[str], names: Mapping[str, ir.Value]) -> None:
        self.space, self.symbols = space, symbols
        self.names = dict(names)
        self._memo: dict[Dim, ir.Value] = {}

    def inside(self, names: Mapping[str, ir.Value] | None = None) -> IndexWriter:
        """A writer for a region of the current block, with additional `names`."""
        return IndexWriter(self.space, self.symbols, {**self.names, **(names or {})})

    def __call__(self, dim: Dim) -> ir.Value:
        """The value of `dim`, of type index."""
        value = self._memo.get(dim)
        if value is None:
            value = self._memo[dim] = self._write(dim)
        return value

    def is_affine(self, atom: Atom) -> bool:
        """Whether affine maps have this division: a floor quotient or remainder by a positive symbolic number."""
        if atom.op not in (*_QUOTIENTS, *_REMAINDERS):
            return False
        dividend, divisor = atom.args
        if not free_symbols(divisor) <= self.symbols or not self.space.is_positive(divisor):
            return False
        return atom.op not in _TRUNCATING or self.space.is_nonnegative(dividend)

    def _write(self, dim: Dim) -> ir.Value:
        if isinstance(dim, int):
            return arith.constant(ir.IndexType.get(), dim)
        ((atoms, coefficient), *rest) = dim.terms
        if not rest and coefficient == 1:
            if len(atoms) > 1 and not any(atom.symbols <= self.symbols for atom in atoms):
                return reduce(arith.muli, [self(_dim(atom)) for atom in atoms])
            if len(atoms) == 1 and not self.is_affine(atoms[0]):
                return self._arith(atoms[0])
        apply = _Apply(self)
        return apply.value(apply.expression(dim))

    def _arith(self, atom: Atom) -> ir.Value:
        if atom.op == "symbol":
            return self.names[atom.key]
        args = [self(arg) for arg in atom.args]
        if atom.op in ("max", "min"):
            return reduce(arith.maxsi if atom.op == "max" else arith.minsi, args)
        left, right = args
        if atom.op in _TRUNCATING:
            return (arith.divsi if atom.op == "idiv" else arith.remsi)(left, right)
        quotient = arith.floordivsi(left, right)
        return quotient if atom.op == "floordiv" else arith.subi(left, arith.muli(quotient, right))


class _Apply:
    """One `affine.apply` under construction: the values of its dims and symbols, by their expressions."""

    def __init__(self, index: IndexWriter) -> None:
        self.index = index
        self._dims: dict[Dim, ir.Value] = {}
        self._symbols: dict[Dim, ir.Value] = {}

    def value(self, expression: ir.AffineExpr) -> ir.Value:
        """The value of an expression over these dims and symbols."""
        result = ir.AffineMap.get(len(self._dims), len(self._symbols), [expression])
        return affine.AffineApplyOp(result, [*self._dims.values(), *self._symbols.values()]).result

    def expression(self, dim: Dim) -> ir.AffineExpr:
        """`dim` as an affine expression over these dims and symbols."""
        if isinstance(dim, int):
            return ir.AffineExpr.get_constant(dim)
        return reduce(ir.AffineExpr.get_add, [self._term(*term) for term in dim.terms])

    def _term(self, atoms: tuple[Atom, ...], coefficient: int) -> ir.AffineExpr:
        known = self.index.symbols
        factors = [self._atom(atom) for atom in atoms if atom.symbols <= known]
        others = tuple(atom for atom in atoms if not atom.symbols <= known)
        if len(others) > 1:
            factors.insert(0, self._leaf(Expr(((others, 1),))))
        elif others:
            factors.insert(0, self._atom(others[0]))
        return reduce(ir.AffineExpr.get_mul, [*factors, ir.AffineExpr.get_constant(coefficient)])

    def _atom(self, atom: Atom) -> ir.AffineExpr:
        if not self.index.is_affine(atom):
            return self._leaf(_dim(atom), is_symbol=atom.op == "symbol" and atom.symbols <= self.index.symbols)
        dividend, divisor = map(self.expression, atom.args)
        return (ir.AffineExpr.get_floor_div if atom.op in _QUOTIENTS else ir.AffineExpr.get_mod)(dividend, divisor)

    def _leaf(self, dim: Dim, *, is_symbol: bool = False) -> ir.AffineExpr:
        known = self._symbols if is_symbol else self._dims
        if dim not in known:
            known[dim] = self.index(dim)
        number = list(known).index(dim)
        return (ir.AffineExpr.get_symbol if is_symbol else ir.AffineExpr.get_dim)(number)


def _dim(atom: Atom) -> Dim:
    return Expr((((atom,), 1),))
