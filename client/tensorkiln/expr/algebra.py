"""Polynomials over integer atoms in one canonical form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, Self, TypeAlias

from ..limits import MAX_EXPRESSION_TERMS
from .errors import ExprError, ExprLimitError

MAX_TERMS = 4 * MAX_EXPRESSION_TERMS
"""The most terms of a sum. Comparing dims at the published limit needs sums of several dims."""
MAX_FACTORS = 64
"""The most factors of one term: a product of more dims, each 2 or more, exceeds every limit of elements."""
MAX_COEFFICIENT = 1 << 128

Dim: TypeAlias = "int | Expr"
"""A constant is always a plain int, so `isinstance(dim, int)` tests whether the dim is static."""


class Atom(str):
    """A factor that is opaque to the algebra: a symbol, a division or remainder, a maximum or minimum.

    It is a string (its text), so that monomials are hashed, compared and sorted without running Python code.
    """

    __slots__ = ("args", "depth", "key", "op", "symbols")

    def __new__(cls, op: str, args: tuple[Dim, ...], name: str = "") -> Self:
        return super().__new__(cls, name or f"{op}({', '.join(str(arg) for arg in args)})")

    def __init__(self, op: str, args: tuple[Dim, ...], name: str = "") -> None:
        self.op: Final = op
        self.args: Final = args
        self.key: Final[str] = str(self)
        self.depth: Final[int] = 1 + max((depth(arg) for arg in args), default=0)
        self.symbols: Final[frozenset[str]] = (
            frozenset((name,)) if name else _NONE.union(*(free_symbols(arg) for arg in args))
        )

    def __getnewargs__(self) -> tuple[str, tuple[Dim, ...], str]:  # type: ignore[override]  # not those of a str
        return self.op, self.args, self.key if self.op == "symbol" else ""


Monomial: TypeAlias = tuple[Atom, ...]
_Terms: TypeAlias = dict[Monomial, int]


_NONE: Final[frozenset[str]] = frozenset()


class Expr:
    """A polynomial that is not a constant: a sum of integer coefficients times products of atoms."""

    __slots__ = ("_hash", "_symbols", "_text", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms: Final = terms
        self._hash = hash(terms)
        self._text = ""
        self._symbols: frozenset[str] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self._hash == other._hash and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if not self._text:
            self._text = " + ".join(_term_text(monomial, coefficient) for monomial, coefficient in self.terms)
        return self._text

    @property
    def symbols(self) -> frozenset[str]:
        """The names of the symbols in it."""
        if self._symbols is None:
            self._symbols = _NONE.union(*[atom.symbols for monomial, _ in self.terms for atom in monomial])
        return self._symbols

    def __repr__(self) -> str:
        return f"Expr({self})"

    def __add__(self, other: Dim) -> Dim:
        return add(self, other)

    def __radd__(self, other: Dim) -> Dim:
        return add(other, self)

    def __sub__(self, other: Dim) -> Dim:
        return sub(self, other)

    def __rsub__(self, other: Dim) -> Dim:
        return sub(other, self)

    def __mul__(self, other: Dim) -> Dim:
        return mul(self, other)

    def __rmul__(self, other: Dim) -> Dim:
        return mul(other, self)

    def __neg__(self) -> Dim:
        return neg(self)

    def __floordiv__(self, other: Dim) -> Dim:
        return floordiv(self, other)

    def __mod__(self, other: Dim) -> Dim:
        return floormod(self, other)


def _term_text(monomial: Monomial, coefficient: int) -> str:
    factors: list[str] = list(monomial)
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    return "*".join(factors)


def _terms(dim: Dim) -> _Terms:
    if isinstance(dim, Expr):
        return dict(dim.terms)
    return {(): dim} if dim else {}


def _order(item: tuple[Monomial, int]) -> tuple[int, Monomial]:
    """Sort key of terms: higher degree first, the constant last."""
    return (-len(item[0]), item[0])


def _check_terms(count: int) -> None:
    if count > MAX_TERMS:
        raise ExprLimitError("expression_terms", MAX_EXPRESSION_TERMS, count)


def _check_coefficient(coefficient: int) -> int:
    if abs(coefficient) > MAX_COEFFICIENT:
        raise ExprError("the expression has a coefficient over 2^128")
    return coefficient


def _from_terms(terms: _Terms) -> Dim:
    kept = [(monomial, _check_coefficient(coefficient)) for monomial, coefficient in terms.items() if coefficient]
    _check_terms(len(kept))
    if len(kept) > 1:
        kept.sort(key=_order)
    return from_ordered(kept)


def from_ordered(terms: Sequence[tuple[Monomial, int]]) -> Dim:
    """The sum of nonzero terms that are already in canonical order, such as a subset of a dim's terms."""
    if not terms:
        return 0
    return Expr(tuple(terms)) if terms[0][0] else terms[0][1]


def _from_atom(atom: Atom) -> Expr:
    return Expr((((atom,), 1),))


@lru_cache(4096)
def symbol(name: str) -> Expr:
    """The symbol called `name`."""
    return _from_atom(Atom("symbol", (), name))


def add(*dims: Dim) -> Dim:
    """The sum of the dims; 0 when there are none."""
    constant = 0
    sums: list[Expr] = []
    for dim in dims:
        if isinstance(dim, Expr):
            sums.append(dim)
        else:
            constant += dim
    if not sums:
        return constant
    if len(sums) == 1:
        return _plus(sums[0], constant) if constant else sums[0]
    total = dict(sums[0].terms)
    for dim in sums[1:]:
        for monomial, coefficient in dim.terms:
            total[monomial] = total.get(monomial, 0) + coefficient
    if constant:
        total[()] = total.get((), 0) + constant
    return _from_terms(total)


def _plus(dim: Expr, constant: int) -> Expr:
    """`dim + constant`. The constant is the last of the terms."""
    terms = dim.terms
    if not terms[-1][0]:
        constant += terms[-1][1]
        terms = terms[:-1]
    if not constant:
        return Expr(terms)
    _check_terms(len(terms) + 1)
    return Expr((*terms, ((), _check_coefficient(constant))))


def neg(dim: Dim) -> Dim:
    """`-dim`."""
    return mul(-1, dim)


def sub(left: Dim, right: Dim) -> Dim:
    """`left - right`."""
    return add(left, _scaled(right, -1) if isinstance(right, Expr) else -right)


def mul(*dims: Dim) -> Dim:
    """The product of the dims; 1 when there are none."""
    return product(dims)


def product(dims: Iterable[Dim]) -> Dim:
    """The product of the dims; 1 when there are none."""
    constant = 1
    factors: list[Expr] = []
    for dim in dims:
        if isinstance(dim, Expr):
            factors.append(dim)
        else:
            constant *= dim
    if not factors or not constant:
        return constant
    made = _scaled(factors[0], constant)
    for factor in factors[1:]:
        made = _mul(made, factor)
    return made


def _mul(left: Expr, right: Expr) -> Expr:
    _check_terms(len(left.terms) * len(right.terms))
    total: _Terms = {}
    for left_monomial, left_coefficient in left.terms:
        for right_monomial, right_coefficient in right.terms:
            if len(left_monomial) + len(right_monomial) > MAX_FACTORS:
                raise ExprError(f"the expression has a product of more than {MAX_FACTORS} factors")
            monomial = tuple(sorted(left_monomial + right_monomial))
            total[monomial] = total.get(monomial, 0) + left_coefficient * right_coefficient
    made = _from_terms(total)
    assert isinstance(made, Expr), "the product of the first terms has atoms, and no other product cancels it"
    return made


def _scaled(dim: Expr, factor: int) -> Expr:
    """`factor * dim`, for a factor that is not 0."""
    if factor == 1:
        return dim
    return Expr(tuple((monomial, _check_coefficient(coefficient * factor)) for monomial, coefficient in dim.terms))


def _without(monomial: Monomial, factors: Monomial) -> Monomial | None:
    """`monomial / factors`, or None when a factor is missing."""
    rest = list(monomial)
    for factor in factors:
        if factor not in rest:
            return None
        rest.remove(factor)
    return tuple(rest)


def split_multiple(dividend: Dim, divisor: Dim) -> tuple[Dim, Dim]:
    """`(q, r)` with `dividend == q * divisor + r`, q being all the terms that a one-term divisor divides exactly.

    A constant rest is less than a constant divisor. ExprError when the divisor is the constant 0.
    """
    _refuse_zero(divisor)
    quotient, rest = _split_terms(dividend, divisor)
    if isinstance(rest, int) and isinstance(divisor, int):
        return add(quotient, rest // divisor), rest % divisor
    return quotient, rest


def _split_terms(dividend: Dim, divisor: Dim) -> tuple[Dim, Dim]:
    terms = tuple(_terms(divisor).items())
    if len(terms) != 1:
        return (1, 0) if dividend == divisor else (0, dividend)
    (factors, factor), quotient, rest = terms[0], {}, {}
    for monomial, coefficient in _terms(dividend).items():
        reduced = _without(monomial, factors)
        if reduced is not None and coefficient % factor == 0:
            quotient[reduced] = coefficient // factor
        else:
            rest[monomial] = coefficient
    return _from_terms(quotient), _from_terms(rest)


def _refuse_zero(divisor: Dim) -> None:
    if divisor == 0:
        raise ExprError("the divisor of an integer division is the constant 0")


def _call(op: str, *args: Dim) -> Expr:
    return _from_atom(Atom(op, args))


def floordiv(left: Dim, right: Dim) -> Dim:
    """Division rounded down. ExprError when the divisor is the constant 0."""
    _refuse_zero(right)
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    quotient, rest = split_multiple(left, right)
    if isinstance(rest, int) and isinstance(right, int):
        return quotient
    return add(quotient, _call("floordiv", rest, right)) if rest != 0 else quotient


def floormod(left: Dim, right: Dim) -> Dim:
    """The remainder with the sign of the divisor. ExprError when the divisor is the constant 0."""
    _refuse_zero(right)
    if isinstance(left, int) and isinstance(right, int):
        return left % right
    _, rest = split_multiple(left, right)
    if isinstance(rest, int) and isinstance(right, int):
        return rest
    return _call("floormod", rest, right) if rest != 0 else 0


def idiv(left: Dim, right: Dim) -> Dim:
    """Division truncated toward zero. ExprError when the divisor is the constant 0."""
    _refuse_zero(right)
    if isinstance(left, int) and isinstance(right, int):
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    quotient, rest = split_multiple(left, right)
    return quotient if rest == 0 else _call("idiv", left, right)


def mod(left: Dim, right: Dim) -> Dim:
    """The remainder of `idiv`, with the sign of the dividend. ExprError when the divisor is the constant 0."""
    _refuse_zero(right)
    if isinstance(left, int) and isinstance(right, int):
        return abs(left) % abs(right) * (-1 if left < 0 else 1)
    _, rest = split_multiple(left, right)
    return 0 if rest == 0 else _call("mod", left, right)


def ceildiv(left: Dim, right: Dim) -> Dim:
    """Division rounded up, for a positive divisor."""
    return floordiv(add(left, right, -1), right)


def maximum(*dims: Dim) -> Dim:
    """The greatest of one or more dims."""
    return _extremum("max", max, dims)


def minimum(*dims: Dim) -> Dim:
    """The least of one or more dims."""
    return _extremum("min", min, dims)


def _extremum(op: str, fold: Callable[[int, int], int], dims: tuple[Dim, ...]) -> Dim:
    constant: int | None = None
    rest: dict[str, Dim] = {}
    for dim in dims:
        for part in _same_call(op, dim):
            if isinstance(part, int):
                constant = part if constant is None else fold(constant, part)
            else:
                rest[str(part)] = part
    args: list[Dim] = [rest[key] for key in sorted(rest)]
    if constant is not None:
        args.append(constant)
    return args[0] if len(args) == 1 else _call(op, *args)


def _same_call(op: str, dim: Dim) -> tuple[Dim, ...]:
    """The arguments of `dim` when it is itself a call of `op`, so that max(max(a, b), c) is max(a, b, c)."""
    if isinstance(dim, Expr) and len(dim.terms) == 1:
        monomial, coefficient = dim.terms[0]
        if coefficient == 1 and len(monomial) == 1 and monomial[0].op == op:
            return monomial[0].args
    return (dim,)


def free_symbols(dim: Dim) -> frozenset[str]:
    """The names of the symbols in `dim`."""
    return dim.symbols if isinstance(dim, Expr) else _NONE


def depth(dim: Dim) -> int:
    """The depth of the canonical form in JSON; a constant or a symbol has depth 1.

    A sum, a product and a difference are one level each.
    """
    if isinstance(dim, int):
        return 1
    added = [_depth_of_term(term) for term in dim.terms if term[1] > 0]
    taken = [_depth_of_term(term) for term in dim.terms if term[1] < 0]
    deepest = max(max(levels) + (len(levels) > 1) for levels in (added, taken) if levels)
    return deepest + 1 if taken else deepest


def _depth_of_term(term: tuple[Monomial, int]) -> int:
    monomial, coefficient = term
    factors = len(monomial) + (abs(coefficient) != 1)
    return max((atom.depth for atom in monomial), default=1) + (factors > 1)
