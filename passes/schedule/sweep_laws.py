"""How what a reduction comes to in blocks is combined, where it needs what another one comes to in the whole row.

In a block it takes what that one, its *reference*, comes to in the block. What the blocks come to is combined by a law:

- squares of distances from something near a mean: the pairwise update of Chan, Golub and LeVeque (1979);
- exponentials below a maximum, scaled where it grows: online softmax (Milakov and Gimelshein, 2018);
- what is found where a maximum stands, which counts in the blocks whose own maximum is the largest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tensorkiln.dtypes import DType

from ..loops.scalar_dag import Constant, Node
from .scalar_nodes import Scalars
from .sum_blocks import TOTAL


@dataclass(frozen=True, slots=True)
class Comes:
    """What a reduction comes to in a `block`, in those `before` it, and in all up to it, `after`."""

    block: Node
    before: Node
    after: Node


@dataclass(frozen=True, slots=True)
class Done:
    """A block that has been reduced: what the reductions of a law come to in it, `blocks`, and what they came to
    `before` it, its totals; what its reference comes to, and what elements had `at_hand` of that.

    `counted` elements were before and `count` are in it, in float64; no block is empty.
    """

    blocks: Sequence[Node]
    before: Sequence[Node]
    other: Comes
    at_hand: Node
    counted: Node
    count: Node


@dataclass(frozen=True, slots=True)
class Block:
    """A reduction of kind `combine` over a block, of what `element` makes of what is at hand; only where `needed`."""

    combine: str
    element: Callable[[Node], Node]
    needed: Node | None = None


class Law(Protocol):
    """How a reduction that refers to another, the stage number `reference`, is combined.

    What its blocks come to, and what all blocks so far do, are tuples: of `blocks` and of `totals`, which begin with
    what the reduction makes of nothing.
    """

    @property
    def reference(self) -> int: ...

    @property
    def value(self) -> Node:
        """What the reference reduces."""
        ...

    @property
    def totals(self) -> tuple[DType, ...]: ...

    def instead(self, write: Scalars, block: Node, count: Node) -> Block | None:
        """What is reduced for `at_hand` where what the block comes to is of no use for it."""
        ...

    def at_hand(self, write: Scalars, block: Node, count: Node, instead: Node | None) -> Node:
        """What elements of a block refer to, where the reference comes to `block` of `count` elements."""
        ...

    def blocks(self, write: Scalars, other: Comes) -> tuple[Block, ...]:
        """What is reduced of a block, where the reference comes to `other`."""
        ...

    def after(self, write: Scalars, done: Done) -> tuple[Node, ...]:
        """What the blocks up to this one come to."""
        ...

    def result(self, write: Scalars, totals: Sequence[Node], count: Node) -> Node:
        """What all blocks come to."""
        ...


@dataclass(frozen=True, slots=True)
class Squares:
    """Squares of the distances of `value` from `centre`, which is the same for the whole row; the reference sums it.

    Blocks are summed around their means as rounded, distances too, which say how far those are off: the corrected
    two-pass algorithm (Chan, Golub and LeVeque, 1983). Totals are the squares around the mean, and the mean. Around
    anything else there are as many squares of its distance from that more. A block whose mean is no finite number is
    summed around its largest element, or around 0.
    """

    reference: int
    value: Node
    centre: Node
    totals: tuple[DType, ...] = (TOTAL, TOTAL)

    def instead(self, write: Scalars, block: Node, count: Node) -> Block | None:
        return Block("max", lambda _: self.value, write.negated(write.is_finite(self._mean(write, block, count))))

    def at_hand(self, write: Scalars, block: Node, count: Node, instead: Node | None) -> Node:
        assert instead is not None, "squares have something to be around instead"
        mean, zero = self._mean(write, block, count), write.zero(self.value.dtype)
        largest = write.where(write.is_finite(instead), instead, zero)
        return write.where(write.is_finite(mean), mean, largest)

    def _mean(self, write: Scalars, block: Node, count: Node) -> Node:
        return write.cast(write.two("fdiv", write.cast(block, TOTAL), count), self.value.dtype)

    def blocks(self, write: Scalars, other: Comes) -> tuple[Block, ...]:
        def square(at_hand: Node) -> Node:
            distance = write.two("sub", self.value, at_hand)
            return write.two("mul", distance, distance)

        return Block("sum", square), Block("sum", lambda at_hand: write.two("sub", self.value, at_hand))

    def after(self, write: Scalars, done: Done) -> tuple[Node, ...]:
        (squares, distances), (total, mean) = (write.cast(each, TOTAL) for each in done.blocks), done.before
        off = write.two("fdiv", distances, done.count)
        less = write.two("mul", distances, off)
        own = write.two("max", write.two("sub", squares, less), write.zero(TOTAL))
        own = write.where(write.is_finite(less), own, squares)
        here = write.two("add", write.cast(done.at_hand, TOTAL), off)
        apart = write.two("sub", here, mean)
        share = write.two("fdiv", done.count, write.two("add", done.counted, done.count))
        # Of none before, what lies apart has no weight.
        between = self._moved(write, apart, write.two("mul", done.counted, share))
        both = write.two("add", write.two("add", total, own), write.if_finite(between))
        return both, write.where(
            write.is_finite(apart), write.two("add", mean, write.two("mul", apart, share)), write.two("add", mean, here)
        )

    def result(self, write: Scalars, totals: Sequence[Node], count: Node) -> Node:
        squares, mean = totals
        centre = write.cast(self.centre, TOTAL)
        moved = write.two("add", squares, self._moved(write, write.two("sub", mean, centre), count))
        # An element that is no finite number is at no finite distance from a centre that is one.
        is_all = write.two("and", write.is_finite(centre), write.negated(write.is_finite(squares)))
        is_empty = write.two("cmplt", count, write.nodes.constant(TOTAL, 1.0))
        return write.cast(write.where(write.two("or", is_all, is_empty), squares, moved), self.value.dtype)

    def _moved(self, write: Scalars, distance: Node, count: Node) -> Node:
        return write.two("mul", count, write.two("mul", distance, distance))


class _BelowMaximum:
    """What laws share whose reference is a maximum: its value in the block is what they refer to."""

    def instead(self, write: Scalars, block: Node, count: Node) -> Block | None:
        return None

    def at_hand(self, write: Scalars, block: Node, count: Node, instead: Node | None) -> Node:
        return block


@dataclass(frozen=True, slots=True)
class Exponentials(_BelowMaximum):
    """Powers of two of the distances of `value` from its maximum, the reference, times `factor`, which is positive."""

    reference: int
    value: Node
    factor: Constant | None
    totals: tuple[DType, ...] = (TOTAL,)

    def blocks(self, write: Scalars, other: Comes) -> tuple[Block, ...]:
        return (Block("sum", lambda at_hand: self._power(write, self.value, at_hand)),)

    def after(self, write: Scalars, done: Done) -> tuple[Node, ...]:
        (block,), (before,), other = done.blocks, done.before, done.other
        old = self._below(write, before, other.before, other.after)
        return (write.two("add", old, self._below(write, write.cast(block, TOTAL), other.block, other.after)),)

    def _below(self, write: Scalars, total: Node, own: Node, maximum: Node) -> Node:
        """A total of exponentials below their `own` maximum as one below a larger one.

        Those of a block of nothing but -inf are no numbers, but none at all below any other maximum.
        """
        scaled = write.two("mul", total, write.cast(self._power(write, own, maximum), TOTAL))
        lowest = write.nodes.constant(own.dtype, -math.inf)
        is_nothing = write.two("and", write.equal(own, lowest), write.two("cmplt", own, maximum))
        return write.where(is_nothing, write.zero(TOTAL), scaled)

    def _power(self, write: Scalars, value: Node, maximum: Node) -> Node:
        distance = write.two("sub", value, maximum)
        return write.unary("exp2", distance if self.factor is None else write.two("mul", distance, self.factor))

    def result(self, write: Scalars, totals: Sequence[Node], count: Node) -> Node:
        return write.cast(totals[0], self.value.dtype)


@dataclass(frozen=True, slots=True)
class Found(_BelowMaximum):
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
    def totals(self) -> tuple[DType, ...]:
        return (self.here.dtype,)

    def blocks(self, write: Scalars, other: Comes) -> tuple[Block, ...]:
        def element(at_hand: Node) -> Node:
            found = write.equal(self.value, at_hand)
            found = found if self.is_none is None else write.two("or", found, self.is_none)
            return write.where(found, self.here, self.elsewhere)

        return (Block(self.combine, element, self._is_same(write, other.block, other.after)),)

    def after(self, write: Scalars, done: Done) -> tuple[Node, ...]:
        (block,), (before,), other = done.blocks, done.before, done.other
        is_first = write.two("cmplt", done.counted, write.nodes.constant(TOTAL, 1.0))
        keeps = write.two("or", is_first, self._is_same(write, other.before, other.after))
        old = write.where(keeps, before, self.elsewhere)
        new = write.where(self._is_same(write, other.block, other.after), block, self.elsewhere)
        return (write.together(self.combine, old, new),)

    def _is_same(self, write: Scalars, one: Node, other: Node) -> Node:
        is_equal = write.equal(one, other)
        if not one.dtype.is_float:
            return is_equal
        are_none = write.two("and", write.two("cmpne", one, one), write.two("cmpne", other, other))
        return write.two("or", is_equal, are_none)

    def result(self, write: Scalars, totals: Sequence[Node], count: Node) -> Node:
        return totals[0]
