"""The integers of a kernel as polynomials, read from the operations that compute them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dialect.mlir import ir
from tensorkiln import expr
from tensorkiln.expr import Dim

from . import elimination
from .elimination import MAX_STEPS
from .facts import Facts
from .polynomials import common_factor
from .scope import Scope

Evaluation = Callable[["Integers", Any], Dim]

INT32 = (-(1 << 31), (1 << 31) - 1)


class Integers:
    """Evaluates integers under the facts of `scope`. A vector is represented by its element at `lane`.

    `loaded` returns the value of a load, None if it is unknown. `named` has the results of operations without operands,
    `where_positive` the facts that hold if an unknown is positive, `dividends` the dividend and divisor of a quotient.
    Values computed in a region are discarded after it, since they may depend on facts that hold only inside.
    """

    def __init__(self, facts: Facts, scope: Scope, loaded: Callable[[Any], Dim | None]) -> None:
        self.facts, self.scope, self.loaded = facts, scope, loaded
        self.lane: Dim = 0
        self.named: dict[str, Dim] = {}
        self.where_positive: dict[str, list[Dim]] = {}
        self.dividends: dict[str, tuple[Dim, int]] = {}
        self.chosen: dict[Any, bool] = {}
        """The conditions of the case that is analysed."""
        self._known: list[dict[Any, Dim]] = [{}]

    def enter(self, facts: Sequence[Dim]) -> Scope:
        """Add nonnegative `facts` to the scope; returns the previous scope, for `leave`."""
        before = self.scope
        impossible = any(self.facts.interval(fact)[1] < 0 for fact in facts)
        more = [most for fact in facts if (most := self.facts.of_symbols(fact)) is not None]
        self.scope = before.where([-1] if impossible else [*facts, *more])
        self._known.append({})
        return before

    def is_possible(self, facts: Sequence[Dim]) -> bool:
        """Whether none of `facts` is known to be negative here."""
        before = self.enter(facts)
        is_reached = self.scope.is_reached
        self.leave(before)
        return is_reached

    def leave(self, scope: Scope) -> None:
        self._known.pop()
        self.scope = scope

    def bind(self, value: Any, dim: Dim) -> None:
        """Set the polynomial of `value` in this region."""
        self._known[-1][value] = dim

    def holds(self, target: Dim, steps: int = MAX_STEPS) -> bool:
        """Whether `target >= 0` is proven here within `steps` eliminations."""
        return elimination.holds(self.facts, target, self.scope, steps)

    def maxima(self, dim: Dim) -> tuple[Dim, ...]:
        return elimination.maxima(self.facts, dim, self.scope)

    def quotients(self, dividend: Dim, divisor: Dim) -> list[Dim]:
        """Upper bounds of `dividend // divisor` here, for a positive divisor."""
        return elimination.quotients(self.facts, dividend, divisor, self.scope)

    def greatest(self, dim: Dim) -> int | None:
        """The least known number that bounds `dim` from above, None without one."""
        known = [expr.bounds(bound, self.scope.ranges)[1] for bound in self.maxima(dim)]
        return min(known, default=None)

    def __call__(self, value: Any) -> Dim:
        """The polynomial of `value`."""
        return self._once(value, lambda: self._evaluate(value))

    def _once(self, key: Any, evaluate: Callable[[], Dim]) -> Dim:
        for known in reversed(self._known):
            if key in known:
                return known[key]
        dim = self._known[-1][key] = evaluate()
        return dim

    def _evaluate(self, value: Any) -> Dim:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return self.facts.new()
        operation = owner.operation
        if operation.name in self.named:
            return self.named[operation.name]
        evaluation = EVALUATIONS.get(operation.name)
        return self.facts.new() if evaluation is None else evaluation(self, operation)

    def shared(self, name: str, arguments: tuple[Dim, ...], make: Callable[..., Dim]) -> Dim:
        """Call `make` on these arguments, cached, so that equal arguments give the same unknown."""
        return self._once((name, *arguments), lambda: make(self, *arguments))

    def is_of_symbols(self, dim: Dim) -> bool:
        """Whether `dim` has no unknown."""
        return expr.free_symbols(dim).isdisjoint(self.facts.unknowns)

    def quotient(self, dividend: Dim, divisor: Dim) -> Dim:
        """`dividend // divisor` for a nonnegative dividend and a positive divisor."""
        if self.is_of_symbols(dividend) and self.is_of_symbols(divisor):
            return expr.floordiv(dividend, divisor)
        factor = _shared(dividend, divisor)
        dividend, divisor = _over(dividend, factor), _over(divisor, factor)
        if divisor == 1:
            return dividend
        if self.holds(expr.sub(expr.sub(divisor, 1), dividend)):
            return 0
        quotient = self.facts.new([0], self.quotients(dividend, divisor))
        self.facts.divided[str(quotient)] = dividend, divisor
        if isinstance(divisor, int):
            self.dividends[str(quotient)] = dividend, divisor
        else:
            self.note_rest(dividend, quotient, divisor)
        return quotient

    def note_rest(self, dividend: Dim, quotient: Dim, divisor: Dim) -> None:
        """Add the bounds of the remainder to the facts, since a kernel may compute it from the quotient."""
        rest = expr.sub(dividend, expr.mul(quotient, divisor))
        self.scope = self.scope.where([rest, expr.add(divisor, -1, expr.neg(rest))])

    def remainder(self, dividend: Dim, divisor: Dim) -> Dim:
        """`dividend % divisor` for a nonnegative dividend and a positive divisor."""
        if self.is_of_symbols(dividend) and self.is_of_symbols(divisor):
            return expr.floormod(dividend, divisor)
        factor = _shared(dividend, divisor)
        inner, parts = _over(dividend, factor), _over(divisor, factor)
        if parts == 1:
            return 0
        if self.holds(expr.sub(expr.sub(parts, 1), inner)):
            return dividend
        quotient = self.shared(_divided.__name__, (dividend, divisor), _divided)
        whole = expr.sub(inner, expr.mul(parts, quotient))
        return expr.mul(factor, self.facts.new([0], [expr.sub(parts, 1)], whole))


def _shared(dividend: Dim, divisor: Dim) -> int:
    return common_factor(dividend, common_factor(divisor, 0))


def _over(dim: Dim, factor: int) -> Dim:
    return dim if factor == 1 else expr.floordiv(dim, factor)


def _constant(integers: Integers, op: Any) -> Dim:
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.IntegerAttr):
        return attribute.value
    return integers.facts.new()


def _polynomial(combine: Callable[..., Dim]) -> Evaluation:
    """Evaluate arithmetic that does not wrap. Indices never do: the limits of graphs keep addresses below 63 bits."""

    def evaluate(integers: Integers, op: Any) -> Dim:
        try:
            combined = combine(*map(integers, op.operands))
        except expr.ExprError:
            # The product has more factors than an expression may have.
            return integers.facts.new()
        return _in_type(integers, combined, op)

    return evaluate


def _operand(integers: Integers, op: Any) -> Dim:
    return integers(op.operands[0])


def _cast(integers: Integers, op: Any) -> Dim:
    return _in_type(integers, integers(op.operands[0]), op)


def _unsigned_cast(integers: Integers, op: Any) -> Dim:
    dim = integers(op.operands[0])
    if integers.holds(dim):
        return _in_type(integers, dim, op)
    return integers.shared(op.name, (dim,), lambda integers, _: integers.facts.new())


def _in_type(integers: Integers, dim: Dim, op: Any) -> Dim:
    """`dim` if the result's type represents it, else an unknown."""
    return dim if _bits(op.results[0].type) >= 64 or _fits(integers, dim) else integers.facts.new()


def _bits(kind: Any) -> int:
    if isinstance(kind, ir.VectorType):
        kind = ir.VectorType(kind).element_type
    return ir.IntegerType(kind).width if isinstance(kind, ir.IntegerType) else 64


def _fits(integers: Integers, dim: Dim) -> bool:
    """Whether a signed 32-bit integer represents `dim`."""
    return integers.holds(expr.sub(dim, INT32[0])) and integers.holds(expr.sub(INT32[1], dim))


def _binary(make: Callable[[Integers, Dim, Dim], Dim]) -> Evaluation:
    """Evaluate a function of two integers, cached by their polynomials."""

    def evaluate(integers: Integers, op: Any) -> Dim:
        return integers.shared(make.__name__, tuple(map(integers, op.operands)), make)

    return evaluate


def _divided(integers: Integers, dividend: Dim, divisor: Dim) -> Dim:
    if not (integers.holds(dividend) and integers.holds(expr.sub(divisor, 1))):
        return integers.facts.new()
    return integers.quotient(dividend, divisor)


def _unsigned_rest(integers: Integers, dividend: Dim, divisor: Dim) -> Dim:
    if not integers.holds(expr.sub(divisor, 1)):
        return integers.facts.new()
    if not integers.holds(dividend):
        # A remainder is below the divisor for any dividend.
        return integers.facts.new([0], [expr.sub(divisor, 1)])
    return integers.remainder(dividend, divisor)


def _signed_rest(integers: Integers, dividend: Dim, divisor: Dim) -> Dim:
    if not (integers.holds(dividend) and integers.holds(expr.sub(divisor, 1))):
        return integers.facts.new()
    return integers.remainder(dividend, divisor)


def _floored(integers: Integers, dividend: Dim, divisor: Dim) -> Dim:
    if not integers.holds(expr.sub(divisor, 1)):
        return integers.facts.new()
    if integers.holds(dividend):
        return integers.quotient(dividend, divisor)
    lowers = [expr.neg(expr.ceildiv(bound, divisor)) for bound in integers.maxima(expr.neg(dividend))]
    quotient = integers.facts.new(lowers, integers.quotients(dividend, divisor))
    integers.note_rest(dividend, quotient, divisor)
    return quotient


def _least(integers: Integers, left: Dim, right: Dim) -> Dim:
    if integers.is_of_symbols(left) and integers.is_of_symbols(right):
        return expr.minimum(left, right)
    if integers.holds(expr.sub(right, left)):
        return left
    if integers.holds(expr.sub(left, right)):
        return right
    lowers = [bound for bound in (0, 1) if all(integers.holds(expr.sub(dim, bound)) for dim in (left, right))]
    return integers.facts.new(lowers[-1:], [left, right])


def _greatest(integers: Integers, left: Dim, right: Dim) -> Dim:
    if integers.is_of_symbols(left) and integers.is_of_symbols(right):
        return expr.maximum(left, right)
    if integers.holds(expr.sub(right, left)):
        return right
    if integers.holds(expr.sub(left, right)):
        return left
    most = [integers.greatest(dim) for dim in (left, right)]
    return integers.facts.new(
        [left, right],
        [max(known for known in most if known is not None)] if all(known is not None for known in most) else [],
    )


def _selected(integers: Integers, op: Any) -> Dim:
    """A select. In `d == 0 ? 1 : d` with d known to be positive, the result is d."""
    if (case := integers.chosen.get(op.operands[0])) is not None:
        return integers(op.operands[1 if case else 2])
    left, right = (integers(operand) for operand in list(op.operands)[1:])
    if _is_zero(integers, op.operands[0], right) and integers.holds(expr.sub(right, 1)):
        return right
    truth = [] if isinstance(op.operands[0].owner, ir.Block) else truths(integers, op.operands[0])
    if not integers.is_possible(truth):
        return right
    lowers = [0] if integers.holds(left) and integers.holds(right) else []
    most = [integers.greatest(dim) for dim in (left, right)]
    numbers = [known for known in most if known is not None]
    chosen = integers.facts.new(lowers, [max(numbers)] if len(numbers) == len(most) else [])
    if right == 0:
        integers.where_positive[str(chosen)] = truth
    return chosen


def _is_zero(integers: Integers, condition: Any, dim: Dim) -> bool:
    """Whether the condition is `dim == 0`."""
    facts = [] if isinstance(condition.owner, ir.Block) else truths(integers, condition)
    return len(facts) == 2 and dim in facts and expr.neg(dim) in facts


def _loaded(integers: Integers, op: Any) -> Dim:
    dim = integers.loaded(op)
    return integers.facts.new() if dim is None else dim


EVALUATIONS: Mapping[str, Evaluation] = {
    "arith.constant": _constant,
    "arith.addi": _polynomial(expr.add),
    "arith.subi": _polynomial(expr.sub),
    "arith.muli": _polynomial(expr.mul),
    "arith.index_cast": _cast,
    "arith.index_castui": _unsigned_cast,
    "arith.divui": _binary(_divided),
    "arith.remui": _binary(_unsigned_rest),
    "arith.divsi": _binary(_divided),
    "arith.remsi": _binary(_signed_rest),
    "arith.floordivsi": _binary(_floored),
    "arith.minsi": _binary(_least),
    "arith.maxsi": _binary(_greatest),
    "arith.select": _selected,
    "vector.broadcast": _operand,
    "vector.step": lambda integers, _: integers.lane,
    "memref.load": _loaded,
    "vector.load": _loaded,
}


def truths(integers: Integers, condition: Any) -> list[Dim]:
    """The nonnegative facts that follow if `condition`, a bool or a lane of a mask, is true."""
    owner = condition.owner
    if isinstance(owner, ir.Block):
        return []
    op = owner.operation
    match op.name:
        case "arith.andi":
            first = truths(integers, op.operands[0])
            before = integers.enter(first)
            second = truths(integers, op.operands[1])
            integers.leave(before)
            return [*first, *second]
        case "arith.cmpi":
            return _compared(integers, op)
        case "vector.broadcast":
            return truths(integers, op.operands[0])
        case "vector.create_mask":
            return [expr.sub(expr.sub(integers(op.operands[0]), 1), integers.lane)]
        case _:
            return []


def _compared(integers: Integers, op: Any) -> list[Dim]:
    how = ir.IntegerAttr(op.attributes["predicate"]).value
    left, right = map(integers, op.operands)
    match PREDICATES[how]:
        case "eq":
            return [expr.sub(left, right), expr.sub(right, left)]
        case "slt":
            return [expr.sub(expr.sub(right, left), 1), *_dividend_below(integers, left, right)]
        case "sle":
            return [expr.sub(right, left)]
        case "sgt":
            return [expr.sub(expr.sub(left, right), 1)]
        case "sge":
            return [expr.sub(left, right)]
        case "ne" if integers.holds(expr.sub(left, right)):
            return [expr.sub(expr.sub(left, right), 1)]
        case "ult" if integers.holds(right):
            below = _dividend_below(integers, left, right)
            return [left, expr.sub(expr.sub(right, left), 1), expr.sub(right, 1), *below]
        case _:
            return []


def _dividend_below(integers: Integers, left: Dim, right: Dim) -> list[Dim]:
    """If `left < right` and `left` is a quotient by d, its dividend is below `right * d`."""
    if str(left) not in integers.dividends:
        return []
    dividend, divisor = integers.dividends[str(left)]
    return [expr.sub(expr.sub(expr.mul(right, divisor), 1), dividend)]


PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
"""The predicates of `arith.cmpi`, in the order of their numbers."""
