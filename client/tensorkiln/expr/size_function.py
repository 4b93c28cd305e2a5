"""Compiles sizes and conditions to one Python function, for a program that is called at many bindings of its symbols.

The function is compiled from a syntax tree of generated integers, operators and names, so no text of a program gets
into it. Each expression is evaluated once, and conditions that the ranges of the symbols prove are omitted. When a
condition does not hold, or the arithmetic might leave 64 bits in any order of its steps, the function returns None; the
caller then uses `evaluate`, which raises the error, if any.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from .algebra import Atom, Dim, Expr, free_symbols
from .evaluate import INT64_MAX, INT64_MIN
from .interval import Interval, bounds

_MOST: Final = 1 << 62
"""An upper bound of every address and every byte count."""
_MOST_TERMS_AT_ONCE: Final = 16
"""The most terms of one sum in the syntax tree, since Python's compiler recurses into it."""


@dataclass(frozen=True, slots=True)
class Local:
    """A value that the function computes, between `low` and `high`."""

    name: str
    low: int
    high: int

    @property
    def span(self) -> Interval:
        return self.low, self.high


Value = int | Local


class SizeFunction:
    """A function under construction, of the symbols in the order of `ranges`, then of the `parameters` by name."""

    def __init__(self, ranges: Mapping[str, Interval], parameters: Sequence[str] = ()) -> None:
        self._ranges = dict(ranges)
        self._symbols = {name: Local(f"v{place}", *span) for place, (name, span) in enumerate(ranges.items())}
        self._parameters = {name: Local(f"p{place}", 0, _MOST) for place, name in enumerate(parameters)}
        self._body: list[tuple[frozenset[str], ast.stmt]] = []
        self._known: dict[Hashable, Value] = {}
        self._shifted: dict[Value, tuple[Value, int]] = {}
        self._namespace: dict[str, Any] = {"__builtins__": {}}
        for symbol in self._symbols.values():
            between = [_load(symbol), ast.Constant(symbol.high)]
            self._refuse_unless(ast.Compare(ast.Constant(symbol.low), [ast.LtE(), ast.LtE()], between))

    def parameter(self, name: str) -> Local:
        """A parameter: an address or a count of bytes."""
        return self._parameters[name]

    def symbol(self, name: str) -> Local:
        """The value of a symbol that has a range."""
        return self._symbols[name]

    def of(self, dim: Dim) -> Value:
        """The value of a dim."""
        if isinstance(dim, int):
            self.require_between(-INT64_MAX, dim, INT64_MAX)
            return dim
        if not free_symbols(dim) <= self._ranges.keys():
            self._refuse_unless(ast.Constant(False))
            return 1
        return self._once(dim, lambda: self._polynomial(dim))

    def sum(self, *values: Value) -> Value:
        """The sum of the values."""
        constant = sum(value for value in values if isinstance(value, int))
        terms = [value for value in values if isinstance(value, Local)]
        if not terms:
            return constant
        rest = terms[0] if len(terms) == 1 else self._once(("sum", *terms), lambda: self._sum(terms))
        if not constant:
            return rest
        made = self._once(("plus", rest, constant), lambda: self._sum([rest, constant]))
        self._shifted[made] = rest, constant
        return made

    def most(self, value: Value) -> int:
        """The upper bound of the value."""
        return _span(value)[1]

    def split(self, value: Value) -> tuple[Value, int]:
        """A sum without its constant, and the constant."""
        return (0, value) if isinstance(value, int) else self._shifted.get(value, (value, 0))

    def _sum(self, values: Sequence[Value]) -> Local:
        spans = [_span(value) for value in values]
        return self._let(self._added([_load(value) for value in values]), *map(sum, zip(*spans, strict=True)))

    def scaled(self, value: Value, factor: int) -> Value:
        """`value * factor`, for a factor of 0 or more."""
        if isinstance(value, int):
            return value * factor
        if factor == 1:
            return value
        low, high = value.low * factor, value.high * factor
        product = ast.BinOp(_load(value), ast.Mult(), ast.Constant(factor))
        return self._once(("scaled", value, factor), lambda: self._let(product, low, high))

    def quotient(self, value: Value, divisor: int) -> Value:
        """`value // divisor`, for a divisor of 1 or more."""
        if isinstance(value, int):
            return value // divisor
        low, high = value.low // divisor, value.high // divisor
        quotient = ast.BinOp(_load(value), ast.FloorDiv(), ast.Constant(divisor))
        return self._once(("quotient", value, divisor), lambda: self._let(quotient, low, high))

    def greatest(self, *values: Value) -> Value:
        """The greatest of the values."""
        return self._extremum("max", values)

    def least(self, *values: Value) -> Value:
        """The least of the values."""
        return self._extremum("min", values)

    def where(self, condition: Value, value: Value) -> Value:
        """`value` where the condition is not 0, else 0."""
        low, high = _span(condition)
        if low > 0 or high < 0 or value == 0:
            return value
        if low == high == 0:
            return 0
        low, high = _span(value)
        chosen = ast.IfExp(_load(condition), _load(value), ast.Constant(0))
        return self._once(("where", condition, value), lambda: self._let(chosen, min(low, 0), max(high, 0)))

    def call(
        self, function: Callable[[Sequence[int]], Sequence[int]], values: Sequence[Value], count: int, most: int
    ) -> list[Value]:
        """The results of a pure function of the values: `count` integers between 0 and `most`."""
        constants = [value for value in values if isinstance(value, int)]
        if len(constants) == len(values):
            return list(function(constants))
        name = f"f{len(self._namespace)}"
        self._namespace[name] = function
        made = [Local(self._new_name(place), 0, most) for place in range(count)]
        target = ast.Tuple([ast.Name(local.name, ast.Store()) for local in made], ast.Store())
        given = ast.Tuple([_load(value) for value in values], ast.Load())
        call = ast.Call(ast.Name(name, ast.Load()), [given], [])
        self._body.append((frozenset(local.name for local in made), ast.Assign([target], call)))
        return list(made)

    def require_at_most(self, value: Value, most: Value) -> None:
        """The function gives None unless `value <= most`."""
        if value != most and _span(value)[1] > _span(most)[0]:
            self._refuse_unless(ast.Compare(_load(value), [ast.LtE()], [_load(most)]))

    def require_equal(self, value: Value, other: Value) -> None:
        """The function gives None unless `value == other`."""
        if value != other and not (_span(value)[0] == _span(value)[1] == _span(other)[0] == _span(other)[1]):
            self._refuse_unless(ast.Compare(_load(value), [ast.Eq()], [_load(other)]))

    def require_between(self, low: int, value: Value, high: int) -> None:
        """The function gives None unless `low <= value <= high`."""
        self.require_at_most(low, value)
        self.require_at_most(value, high)

    def compiled(self, results: Sequence[Value], packed: Sequence[Value]) -> Callable[..., tuple[Any, ...] | None]:
        """Compile the function. It returns the results, then `packed` as bytes of native 64-bit integers."""
        for value in packed:
            self.require_between(INT64_MIN, value, INT64_MAX)
        self._namespace["pack"] = struct.Struct(f"{len(packed)}q").pack
        last = ast.Call(ast.Name("pack", ast.Load()), [_load(value) for value in packed], [])
        made = ast.Return(ast.Tuple([*(_load(value) for value in results), last], ast.Load()))
        names = [local.name for local in (*self._symbols.values(), *self._parameters.values())]
        function = ast.FunctionDef(
            name="sizes",
            args=ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, []),
            body=[*_needed(self._body, made), made],
            decorator_list=[],
        )
        module = ast.fix_missing_locations(ast.Module([function], []))
        exec(compile(module, "<sizes>", "exec"), self._namespace)
        return self._namespace["sizes"]

    def _polynomial(self, dim: Expr) -> Value:
        low, high = bounds(dim, self._ranges)
        terms = [(coefficient, [self._atom(atom) for atom in monomial]) for monomial, coefficient in dim.terms]
        if sum(_most(coefficient, factors) for coefficient, factors in terms) > INT64_MAX:
            magnitude = self._added([self._magnitude(coefficient, factors) for coefficient, factors in terms])
            self._refuse_unless(ast.Compare(magnitude, [ast.LtE()], [ast.Constant(INT64_MAX)]))
        if len(terms) == 1 and terms[0][0] == 1 and len(terms[0][1]) == 1:
            return terms[0][1][0]
        return self._let(self._added([_product(coefficient, factors) for coefficient, factors in terms]), low, high)

    def _magnitude(self, coefficient: int, factors: Sequence[Value]) -> ast.expr:
        """At least the absolute value of a term and of every product of some of its factors."""
        absolutes: list[ast.expr] = [
            _load(factor)
            if _span(factor)[0] > 0
            else ast.IfExp(
                ast.Compare(_load(factor), [ast.Lt()], [ast.Constant(0)]),
                ast.UnaryOp(ast.USub(), _load(factor)),
                ast.BoolOp(ast.Or(), [_load(factor), ast.Constant(1)]),
            )
            for factor in factors
        ]
        return _multiplied([ast.Constant(abs(coefficient)), *absolutes])

    def _atom(self, atom: Atom) -> Value:
        if atom.op == "symbol":
            return self._symbols[atom.key]
        return self._once((atom.op, atom), lambda: self._operation(atom))

    def _operation(self, atom: Atom) -> Value:
        values = [self.of(arg) for arg in atom.args]
        if atom.op in ("max", "min"):
            return self._extremum(atom.op, values)
        left, right = values
        left_low, (right_low, right_high) = _span(left)[0], _span(right)
        if right_low <= 0 <= right_high:
            self._refuse_unless(ast.Compare(_load(right), [ast.NotEq()], [ast.Constant(0)]))
        operator = ast.FloorDiv() if atom.op in ("floordiv", "idiv") else ast.Mod()
        made: ast.expr = ast.BinOp(_load(left), operator, _load(right))
        if atom.op in ("idiv", "mod") and not (left_low >= 0 and right_low > 0):
            # Truncating division: floor division if the signs agree, else that of the negated dividend.
            negative = ast.Compare(_load(left), [ast.Lt()], [ast.Constant(0)])
            agree = ast.Compare(negative, [ast.Eq()], [ast.Compare(_load(right), [ast.Lt()], [ast.Constant(0)])])
            opposite = ast.BinOp(ast.UnaryOp(ast.USub(), _load(left)), operator, _load(right))
            made = ast.IfExp(agree, made, ast.UnaryOp(ast.USub(), opposite))
        return self._let(made, *bounds(Expr((((atom,), 1),)), self._ranges))

    def _extremum(self, op: str, values: Sequence[Value]) -> Value:
        fold, compare = (max, ast.GtE()) if op == "max" else (min, ast.LtE())
        chosen = values[0]
        for value in values[1:]:
            (low, high), (other_low, other_high) = _span(chosen), _span(value)
            if chosen == value or (low >= other_high if op == "max" else high <= other_low):
                continue
            if other_low >= high if op == "max" else other_high <= low:
                chosen = value
                continue
            better = ast.Compare(_load(chosen), [compare], [_load(value)])
            made, span = ast.IfExp(better, _load(chosen), _load(value)), (fold(low, other_low), fold(high, other_high))
            chosen = self._once((op, chosen, value), lambda made=made, span=span: self._let(made, *span))
        return chosen

    def _added(self, parts: Sequence[ast.expr]) -> ast.expr:
        total = parts[0]
        for count, part in enumerate(parts[1:], 1):
            if count % _MOST_TERMS_AT_ONCE == 0:
                total = _load(self._let(total, -_MOST, _MOST))
            total = ast.BinOp(total, ast.Add(), part)
        return total

    def _once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def _let(self, expression: ast.expr, low: int, high: int) -> Local:
        local = Local(self._new_name(), low, high)
        self._body.append((frozenset((local.name,)), ast.Assign([ast.Name(local.name, ast.Store())], expression)))
        return local

    def _new_name(self, place: int = 0) -> str:
        return f"t{len(self._body)}_{place}"

    def _refuse_unless(self, condition: ast.expr) -> None:
        test = ast.UnaryOp(ast.Not(), condition)
        self._body.append((frozenset(), ast.If(test, [ast.Return(ast.Constant(None))], [])))


def _needed(body: Sequence[tuple[frozenset[str], ast.stmt]], last: ast.stmt) -> list[ast.stmt]:
    """Dead-code elimination: the conditions, and the assignments that they or `last` need."""
    used, kept = _names(last), list[ast.stmt]()
    for assigned, statement in reversed(body):
        if not assigned or assigned & used:
            kept.append(statement)
            used |= _names(statement)
    return kept[::-1]


def _names(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _span(value: Value) -> Interval:
    return (value, value) if isinstance(value, int) else value.span


def _most(coefficient: int, factors: Sequence[Value]) -> int:
    """The greatest `SizeFunction._magnitude` of a term."""
    return abs(coefficient) * prod(max(1, *map(abs, _span(factor))) for factor in factors)


def _load(value: Value) -> ast.expr:
    return ast.Constant(value) if isinstance(value, int) else ast.Name(value.name, ast.Load())


def _product(coefficient: int, factors: Sequence[Value]) -> ast.expr:
    parts = [_load(factor) for factor in factors]
    return _multiplied(parts if parts and coefficient == 1 else [ast.Constant(coefficient), *parts])


def _multiplied(parts: Sequence[ast.expr]) -> ast.expr:
    product = parts[0]
    for part in parts[1:]:
        product = ast.BinOp(product, ast.Mult(), part)
    return product
