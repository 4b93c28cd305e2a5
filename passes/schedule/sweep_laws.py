"""Combine the block results of a reduction that depends on the whole-row result of another reduction, its *reference*.

Within a block the reduction uses the reference's result for that block. A law then combines the block results:

- squared distances from a value near the mean: the pairwise update of Chan, Golub and LeVeque (1979);
- exponentials below a maximum, rescaled when the maximum grows: online softmax (Milakov and Gimelshein, 2018);
- values selected at the maximum, which count only in blocks whose own maximum equals that of the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensorkiln.dtypes import DType

from ..loops.scalar_dag import Constant, Interner, Node
from .sum_blocks import TOTAL


@dataclass(frozen=True, slots=True)
class Comes:
    """Results of a reduction: for this `block`, for all blocks `before` it, and for all blocks up to it, `after`."""

    block: Node
    before: Node
    after: Node


@dataclass(frozen=True, slots=True)
class Done:
    """The inputs of a law's update after a block: its results in `blocks`, its totals `before`, and its reference.

    `other` has the results of the reference; `at_hand` is the value that the elements of the block referred to.
    `counted` earlier elements and `count` in this block are float64; no block is empty.
    """

    blocks: Sequence[Node]
    before: Sequence[Node]
    other: Comes
    at_hand: Node
    counted: Node
    count: Node


@dataclass(frozen=True, slots=True)
class Block:
    """A reduction of kind `combine` over a block. `element` maps the value at hand to the element to reduce. The
    reduction runs only if the condition `needed` holds.
    """

    combine: str
    element: Callable[[Node], Node]
    needed: Node | None = None


@dataclass(frozen=True, slots=True)
class Squares:
    """Squared distances of `value` from `centre`, which is constant in a row; the reference is the sum of `value`.

    In each block the squared distances from the rounded mean are summed, and the distances too, which correct for that
    rounding: the corrected two-pass algorithm (Chan, Golub and LeVeque, 1983). The totals are the sum of squares around
    the mean, and the mean. Moving to another centre adds the count times the squared distance between the two. A block
    whose mean is not finite is summed around its largest element, or around 0 if that is not finite either.
    """

    reference: int
    value: Node
    centre: Node
    totals: tuple[DType, ...] = (TOTAL, TOTAL)

    def instead(self, write: Interner, block: Node, count: Node) -> Block | None:
        """Another reduction of the block, for use in `at_hand` where the reference's block result cannot be used."""
        return Block("max", lambda _: self.value, write.negated(write.is_finite(self._mean(write, block, count))))

    def at_hand(self, write: Interner, block: Node, count: Node, instead: Node | None) -> Node:
        """The value that the elements of a block refer to; the reference gives `block` over `count` elements."""
        assert instead is not None, "squares have something to be around instead"
        mean, zero = self._mean(write, block, count), write.zero(self.value.dtype)
        largest = write.where(write.is_finite(instead), instead, zero)
        return write.where(write.is_finite(mean), mean, largest)

    def _mean(self, write: Interner, block: Node, count: Node) -> Node:
        return write.cast(write.binop("fdiv", write.cast(block, TOTAL), count), self.value.dtype)

    def blocks(self, write: Interner, other: Comes) -> tuple[Block, ...]:
        """The reductions of a block, given the results `other` of the reference."""

        def square(at_hand: Node) -> Node:
            distance = write.binop("sub", self.value, at_hand)
            return write.binop("mul", distance, distance)

        return Block("sum", square), Block("sum", lambda at_hand: write.binop("sub", self.value, at_hand))

    def after(self, write: Interner, done: Done) -> tuple[Node, ...]:
        """The totals that include this block."""
        (squares, distances), (total, mean) = (write.cast(each, TOTAL) for each in done.blocks), done.before
        off = write.binop("fdiv", distances, done.count)
        less = write.binop("mul", distances, off)
        own = write.binop("max", write.binop("sub", squares, less), write.zero(TOTAL))
        own = write.where(write.is_finite(less), own, squares)
        here = write.binop("add", write.cast(done.at_hand, TOTAL), off)
        apart = write.binop("sub", here, mean)
        share = write.binop("fdiv", done.count, write.binop("add", done.counted, done.count))
        # If no block came before, the distance between the means has no weight.
        between = self._moved(write, apart, write.binop("mul", done.counted, share))
        between = write.where(write.is_finite(between), between, write.zero(TOTAL))
        both = write.binop("add", write.binop("add", total, own), between)
        moved = write.binop("add", mean, write.binop("mul", apart, share))
        return both, write.where(write.is_finite(apart), moved, write.binop("add", mean, here))

    def result(self, write: Interner, totals: Sequence[Node], count: Node) -> Node:
        """The result of the row."""
        squares, mean = totals
        centre = write.cast(self.centre, TOTAL)
        moved = write.binop("add", squares, self._moved(write, write.binop("sub", mean, centre), count))
        # An element that is not finite is at no finite distance from a finite centre.
        is_all = write.binop("and", write.is_finite(centre), write.negated(write.is_finite(squares)))
        is_empty = write.binop("cmplt", count, write.constant(TOTAL, 1.0))
        return write.cast(write.where(write.binop("or", is_all, is_empty), squares, moved), self.value.dtype)

    def _moved(self, write: Interner, distance: Node, count: Node) -> Node:
        return write.binop("mul", count, write.binop("mul", distance, distance))


class _BelowMaximum:
    """The part of a law whose reference is a maximum: elements refer to the maximum of their block."""

    def instead(self, write: Interner, block: Node, count: Node) -> Block | None:
        return None

    def at_hand(self, write: Interner, block: Node, count: Node, instead: Node | None) -> Node:
        return block


@dataclass(frozen=True, slots=True)
class Exponentials(_BelowMaximum):
    """Sum of `2 ** ((value - maximum) * factor)`; the reference is the maximum, and `factor`, if any, is positive."""

    reference: int
    value: Node
    factor: Constant | None
    totals: tuple[DType, ...] = (TOTAL,)

    def blocks(self, write: Interner, other: Comes) -> tuple[Block, ...]:
        return (Block("sum", lambda at_hand: self._power(write, self.value, at_hand)),)

    def after(self, write: Interner, done: Done) -> tuple[Node, ...]:
        (block,), (before,), other = done.blocks, done.before, done.other
        old = self._below(write, before, other.before, other.after)
        return (write.binop("add", old, self._below(write, write.cast(block, TOTAL), other.block, other.after)),)

    def _below(self, write: Interner, total: Node, own: Node, maximum: Node) -> Node:
        """Rescale a total of exponentials below their `own` maximum to a larger `maximum`.

        For a block of -inf only, the total is NaN; it counts as 0 below any larger maximum.
        """
        scaled = write.binop("mul", total, write.cast(self._power(write, own, maximum), TOTAL))
        lowest = write.constant(own.dtype, -math.inf)
        is_nothing = write.binop("and", write.equal(own, lowest), write.binop("cmplt", own, maximum))
        return write.where(is_nothing, write.zero(TOTAL), scaled)

    def _power(self, write: Interner, value: Node, maximum: Node) -> Node:
        distance = write.binop("sub", value, maximum)
        return write.unary("exp2", distance if self.factor is None else write.binop("mul", distance, self.factor))

    def result(self, write: Interner, totals: Sequence[Node], count: Node) -> Node:
        return write.cast(totals[0], self.value.dtype)


@dataclass(frozen=True, slots=True)
class Found(_BelowMaximum):
    """`here` where `value` equals its maximum, the reference, or where `is_none` holds (a NaN); else `elsewhere`.

    A block whose maximum is below that of the row counts as `elsewhere` throughout.
    """

    reference: int
    combine: str
    value: Node
    here: Node
    elsewhere: Constant
    is_none: Node | None

    @property
    def totals(self) -> tuple[DType, ...]:
        return (self.here.dtype,)

    def blocks(self, write: Interner, other: Comes) -> tuple[Block, ...]:
        def element(at_hand: Node) -> Node:
            found = write.equal(self.value, at_hand)
            found = found if self.is_none is None else write.binop("or", found, self.is_none)
            return write.where(found, self.here, self.elsewhere)

        return (Block(self.combine, element, self._is_same(write, other.block, other.after)),)

    def after(self, write: Interner, done: Done) -> tuple[Node, ...]:
        (block,), (before,), other = done.blocks, done.before, done.other
        is_first = write.binop("cmplt", done.counted, write.constant(TOTAL, 1.0))
        keeps = write.binop("or", is_first, self._is_same(write, other.before, other.after))
        old = write.where(keeps, before, self.elsewhere)
        new = write.where(self._is_same(write, other.block, other.after), block, self.elsewhere)
        return (write.combined(self.combine, old, new),)

    def _is_same(self, write: Interner, one: Node, other: Node) -> Node:
        is_equal = write.equal(one, other)
        if not one.dtype.is_float:
            return is_equal
        are_none = write.binop("and", write.binop("cmpne", one, one), write.binop("cmpne", other, other))
        return write.binop("or", is_equal, are_none)

    def result(self, write: Interner, totals: Sequence[Node], count: Node) -> Node:
        return totals[0]


Law = Squares | Exponentials | Found
"""Combines a reduction that depends on the reduction of stage number `reference`, of the elements `value`.

A law has several reductions per block (`blocks`) and several running totals (dtypes `totals`). The totals start from
the identity of the reduction.
"""
