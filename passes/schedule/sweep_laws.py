"""How what a reduction comes to in blocks is combined, where it needs what another one comes to in the whole row.

In a block it takes what that one, its *reference*, comes to in the block. What the blocks come to is combined by a law:

- squares of distances from something near a mean: the pairwise update of Chan, Golub and LeVeque (1979);
- exponentials below a maximum, scaled where it grows: online softmax (Milakov and Gimelshein, 2018);
- what is found where a maximum stands, which counts in the blocks whose own maximum is the largest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tensorkiln.dtypes import DType

from ..loops.scalar_dag import Apply, Constant, Interner, Node, zero
from ..to_linalg.scalar_ops import COMBINE
from .sum_blocks import TOTAL


class Scalars:
    """Scalar operations as nodes."""

    def __init__(self, nodes: Interner) -> None:
        self.nodes = nodes

    def two(self, kind: str, left: Node, right: Node) -> Node:
        """`left kind right`, of two of one dtype."""
        dtype = DType.BOOL if kind in ("cmplt", "cmpne") else left.dtype
        return self.nodes.apply(dtype, "binop", (kind, left.dtype, right.dtype), left, right)

    def where(self, condition: Node, here: Node, elsewhere: Node) -> Node:
        """`here` where the condition holds, else `elsewhere`."""
        return self.nodes.apply(here.dtype, "ternary", ("where", condition.dtype), condition, here, elsewhere)

    def unary(self, kind: str, value: Node) -> Node:
        """`kind(value)`."""
        return self.nodes.apply(value.dtype, "unary", (kind,), value)

    def equal(self, left: Node, right: Node) -> Node:
        """Whether both are one number."""
        return self.unary("neg", self.two("cmpne", left, right))

    def cast(self, value: Node, dtype: DType) -> Node:
        """`value` as one of `dtype`."""
        return value if value.dtype is dtype else self.nodes.apply(dtype, "cast", (value.dtype,), value)

    def zero(self, dtype: DType) -> Node:
        """Zero of `dtype`."""
        return zero(self.nodes, dtype)

    def together(self, combine: str, left: Node, right: Node) -> Node:
        """What a reduction of this kind makes of two values."""
        return self.nodes.apply(left.dtype, COMBINE, (combine,), left, right)


@dataclass(frozen=True, slots=True)
class Reference:
    """A reduction of kind `combine` of `element`, of whose result the whole row's is `result`."""

    combine: str
    element: Node
    result: Node


@dataclass(frozen=True, slots=True)
class Comes:
    """What a reduction comes to in a `block`, in those `before` it, and in all up to it, `after`."""

    block: Node
    before: Node
    after: Node


@dataclass(frozen=True, slots=True)
class Counts:
    """How many elements were in the blocks before, and are in this one, in float64."""

    before: Node
    block: Node


class Law(Protocol):
    """How a reduction that refers to another, the stage number `reference`, is combined."""

    @property
    def reference(self) -> int: ...

    @property
    def value(self) -> Node:
        """What the reference reduces."""
        ...

    @property
    def total(self) -> DType:
        """Of what the blocks come to."""
        ...

    def at_hand(self, write: Scalars, block: Node, count: Node) -> Node:
        """What elements of a block refer to, where the reference comes to `block` of `count` elements."""
        ...

    def element(self, write: Scalars, at_hand: Node) -> Node:
        """An element, with what it refers to at hand."""
        ...

    def is_needed(self, write: Scalars, other: Comes) -> Node | None:
        """Whether what the block comes to matters, where the reference comes to `other`; None is always."""
        ...

    def after(self, write: Scalars, block: Node, before: Node, other: Comes, at_hand: Node, counts: Counts) -> Node:
        """What the blocks up to this one come to, the reference to `other`."""
        ...

    def result(self, write: Scalars, total: Node, other: Node, count: Node) -> Node:
        """What all blocks come to, the reference to `other`."""
        ...


@dataclass(frozen=True, slots=True)
class Squares:
    """Squares of the distances of `element` from `centre`, which is the same for the whole row; the reference sums it.

    They are summed around the mean. Around anything else they come to as many squares of its distance from that more.
    """

    reference: int
    value: Node
    centre: Node
    total: DType = TOTAL

    def at_hand(self, write: Scalars, block: Node, count: Node) -> Node:
        return write.cast(write.two("fdiv", write.cast(block, TOTAL), count), self.value.dtype)

    def element(self, write: Scalars, at_hand: Node) -> Node:
        distance = write.two("sub", self.value, at_hand)
        return write.two("mul", distance, distance)

    def is_needed(self, write: Scalars, other: Comes) -> Node | None:
        return None

    def after(self, write: Scalars, block: Node, before: Node, other: Comes, at_hand: Node, counts: Counts) -> Node:
        mean = write.two("fdiv", write.cast(other.block, TOTAL), counts.block)
        # The block was summed around its mean as rounded.
        rounding = self._moved(write, mean, write.cast(at_hand, TOTAL), counts.block)
        own = write.two("max", write.two("sub", write.cast(block, TOTAL), rounding), write.zero(TOTAL))
        both = write.two("add", counts.before, counts.block)
        weight = write.two("fdiv", write.two("mul", counts.before, counts.block), both)
        apart = self._moved(write, mean, write.two("fdiv", other.before, counts.before), weight)
        is_first = write.two("cmplt", counts.before, write.nodes.constant(TOTAL, 1.0))
        return write.two("add", before, write.two("add", own, write.where(is_first, write.zero(TOTAL), apart)))

    def result(self, write: Scalars, total: Node, other: Node, count: Node) -> Node:
        mean = write.two("fdiv", other, count)
        moved = write.two("add", total, self._moved(write, mean, write.cast(self.centre, TOTAL), count))
        is_empty = write.two("cmplt", count, write.nodes.constant(TOTAL, 1.0))
        return write.cast(write.where(is_empty, total, moved), self.value.dtype)

    def _moved(self, write: Scalars, mean: Node, centre: Node, count: Node) -> Node:
        distance = write.two("sub", mean, centre)
        return write.two("mul", count, write.two("mul", distance, distance))


@dataclass(frozen=True, slots=True)
class Exponentials:
    """Powers of two of the distances of `value` from its maximum, the reference, times `factor`, which is positive."""

    reference: int
    value: Node
    factor: Constant | None
    total: DType = TOTAL

    def at_hand(self, write: Scalars, block: Node, count: Node) -> Node:
        return block

    def element(self, write: Scalars, at_hand: Node) -> Node:
        distance = write.two("sub", self.value, at_hand)
        return write.unary("exp2", distance if self.factor is None else write.two("mul", distance, self.factor))

    def is_needed(self, write: Scalars, other: Comes) -> Node | None:
        return None

    def after(self, write: Scalars, block: Node, before: Node, other: Comes, at_hand: Node, counts: Counts) -> Node:
        old = self._below(write, before, other.before, other.after)
        return write.two("add", old, self._below(write, write.cast(block, TOTAL), other.block, other.after))

    def _below(self, write: Scalars, total: Node, own: Node, maximum: Node) -> Node:
        """A total of exponentials below their `own` maximum as one below a larger one.

        Those of a block of nothing but -inf are no numbers, but none at all below any other maximum.
        """
        scaled = write.two("mul", total, write.cast(self._scale(write, own, maximum), TOTAL))
        lowest = write.nodes.constant(own.dtype, -math.inf)
        is_nothing = write.two("and", write.equal(own, lowest), write.two("cmplt", own, maximum))
        return write.where(is_nothing, write.zero(TOTAL), scaled)

    def _scale(self, write: Scalars, own: Node, maximum: Node) -> Node:
        distance = write.two("sub", own, maximum)
        return write.unary("exp2", distance if self.factor is None else write.two("mul", distance, self.factor))

    def result(self, write: Scalars, total: Node, other: Node, count: Node) -> Node:
        return write.cast(total, self.value.dtype)


@dataclass(frozen=True, slots=True)
class Found:
    """`here` where `value` is its maximum, the reference, or where it `is_none`, a NaN; `elsewhere` where not.

    Where a block has not the maximum of the row, all of it is elsewhere.
    """

    reference: int
    combine: str
    value: Node
    here: Node
    elsewhere: Constant
    is_none: Node | None

    @property
    def total(self) -> DType:
        return self.here.dtype

    def at_hand(self, write: Scalars, block: Node, count: Node) -> Node:
        return block

    def element(self, write: Scalars, at_hand: Node) -> Node:
        found = write.equal(self.value, at_hand)
        if self.is_none is not None:
            found = write.two("or", found, self.is_none)
        return write.where(found, self.here, self.elsewhere)

    def is_needed(self, write: Scalars, other: Comes) -> Node:
        return self._is_same(write, other.block, other.after)

    def after(self, write: Scalars, block: Node, before: Node, other: Comes, at_hand: Node, counts: Counts) -> Node:
        is_first = write.two("cmplt", counts.before, write.nodes.constant(TOTAL, 1.0))
        keeps = write.two("or", is_first, self._is_same(write, other.before, other.after))
        old = write.where(keeps, before, self.elsewhere)
        new = write.where(self.is_needed(write, other), block, self.elsewhere)
        return write.together(self.combine, old, new)

    def _is_same(self, write: Scalars, one: Node, other: Node) -> Node:
        is_equal = write.equal(one, other)
        if not one.dtype.is_float:
            return is_equal
        are_none = write.two("and", write.two("cmpne", one, one), write.two("cmpne", other, other))
        return write.two("or", is_equal, are_none)

    def result(self, write: Scalars, total: Node, other: Node, count: Node) -> Node:
        return total


@dataclass(frozen=True, slots=True)
class Search:
    """What a law is looked for: a reduction of kind `combine` of `element`, that refers to the stage of that `number`.

    `is_given` says of a node whether it is the same for a whole row.
    """

    combine: str
    element: Apply
    number: int
    reference: Reference
    is_given: Callable[[Node], bool]


def law_of(
    combine: str, element: Node, references: Mapping[int, Reference], is_given: Callable[[Node], bool]
) -> Law | None:
    """The law of a reduction of `element`, or None where there is none."""
    if not isinstance(element, Apply):
        return None
    for number, reference in references.items():
        search = Search(combine, element, number, reference, is_given)
        for match in (_squares, _exponentials, _found):
            law = match(search)
            if law is not None:
                return law
    return None


def _args(node: Node | None, op: str, kind: str) -> tuple[Node, ...]:
    """The operands of an operation of that kind; none of another."""
    return node.args if isinstance(node, Apply) and (node.op, *node.attributes[:1]) == (op, kind) else ()


def _either_way(node: Node | None, kind: str) -> tuple[tuple[Node, Node], ...]:
    """The operands of a binary operation of that kind in both orders; none of another."""
    args = _args(node, "binop", kind)
    return ((args[0], args[1]), (args[1], args[0])) if args else ()


def _squares(search: Search) -> Law | None:
    value = search.reference.element
    factors = _args(search.element, "binop", "mul")
    if {search.combine, search.reference.combine} != {"sum"} or len(set(map(id, factors))) != 1:
        return None
    for one, centre in _either_way(factors[0], "sub"):
        if one is value and value.dtype in _FLOATS and search.is_given(centre):
            return Squares(search.number, value, centre)
    return None


def _exponentials(search: Search) -> Law | None:
    reference, exponents = search.reference, _args(search.element, "unary", "exp2")
    if search.combine != "sum" or reference.combine != "max" or not exponents or search.element.dtype not in _FLOATS:
        return None
    distance, factor = exponents[0], None
    for one, other in _either_way(distance, "mul"):
        if isinstance(other, Constant) and other.value > 0:
            distance, factor = one, other
    is_below = _args(distance, "binop", "sub") == (reference.element, reference.result)
    return Exponentials(search.number, reference.element, factor) if is_below else None


def _found(search: Search) -> Law | None:
    reference, branches = search.reference, _args(search.element, "ternary", "where")
    if reference.combine != "max" or not branches:
        return None
    condition, here, elsewhere = branches
    is_count = search.combine == "sum" and here.dtype.is_integer
    if not isinstance(elsewhere, Constant) or not (search.combine == "max" or (is_count and elsewhere.value == 0)):
        return None
    value, is_none = reference.element, None
    for one, other in _either_way(condition, "or"):
        if _args(other, "binop", "cmpne") == (value, value):
            condition, is_none = one, other
    ends = _args(next(iter(_args(condition, "unary", "neg")), None), "binop", "cmpne")
    if ends not in ((value, reference.result), (reference.result, value)):
        return None
    return Found(search.number, search.combine, value, here, elsewhere, is_none)


_FLOATS = (DType.FLOAT32, DType.FLOAT64)
