"""What the stages of a row tell about its values, as in a softmax: shares of a sum, and distances from a maximum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, substitute, symbol

from ..loops.body import KernelBody, Stage, inner_loops
from ..loops.scalar_dag import Apply, Constant, Load, Node, walk

SINGLE_STEP: Final = frozenset({DType.FLOAT32, DType.FLOAT64})
"""Floats that are computed in their own precision."""

Shape = tuple[object, ...]
"""A node without the addresses of its loads."""


@dataclass(frozen=True, slots=True)
class RowFacts:
    """`shares` are pairs of operands: nonnegative numbers, and their sum, which is finite only if all of them are.

    `peaks` are pairs of an element and the operand that holds the maximum of all such elements of the row.
    `drops_denormals` means that powers of two of at most 1 may be 0 instead of denormal, since all that is left of the
    row are sums of products with their shares.
    """

    shares: AbstractSet[tuple[int, int]] = frozenset()
    peaks: AbstractSet[tuple[Shape, int]] = frozenset()
    drops_denormals: bool = False

    def is_share(self, division: Apply) -> bool:
        """Whether a division has finite quotients if its divisor is finite."""
        match division.args:
            case (Load(operand=dividend, conditions=()), Load(operand=divisor, conditions=())):
                return (dividend, divisor) in self.shares
            case _:
                return False

    def is_at_most_one(self, power: Apply) -> bool:
        """Whether a power of two has an exponent of at most 0, or NaN."""
        found = _distance(power)
        if found is None:
            return False
        element, peak = found
        shape = _shape(element)
        return shape is not None and (shape, peak.operand) in self.peaks


NO_FACTS: Final = RowFacts()


def is_power(node: Node) -> bool:
    """Whether the node is a power of two in its own precision."""
    is_exp2 = isinstance(node, Apply) and (node.op, node.attributes) == ("unary", ("exp2",))
    return is_exp2 and node.dtype in SINGLE_STEP


def facts_of(body: KernelBody) -> RowFacts:
    """What the stages of a kernel tell about the values of each of its rows."""
    return RowFacts(frozenset(_shares(body)), frozenset(_peaks(body)))


def _shares(body: KernelBody) -> Iterator[tuple[int, int]]:
    """The exponentials of a row and their sum; both are local operands of the kernel."""
    stages = {store.operand: stage for stage in body.stages for store in stage.stores}
    for stage in body.stages:
        if stage.combine != "sum" or not isinstance(load := stage.elements[-1], Load) or load.conditions:
            continue
        (entry,) = stage.stores
        of = stages.get(load.operand)
        if of is None or of.combine is not None or not (body.is_local(load.operand) and body.is_local(entry.operand)):
            continue
        names = _matched(body, stage, of)
        is_same = names is not None and substitute(load.address, names) == of.domain.address
        powers = (store.element for store in of.stores if store.operand == load.operand)
        if is_same and all(map(is_power, powers)):
            yield load.operand, entry.operand


def _peaks(body: KernelBody) -> set[tuple[Shape, int]]:
    """The elements whose distance from their maximum is an exponent, and the operand of the maximum."""
    stages = {store.operand: stage for stage in body.stages for store in stage.stores if stage.combine == "max"}
    found: set[tuple[Shape, int]] = set()
    others: set[tuple[Shape, int]] = set()
    for stage in body.stages:
        for node in walk(stage.elements, body.nodes):
            distance = _distance(node) if isinstance(node, Apply) and is_power(node) else None
            if distance is None or distance[1].operand not in stages:
                continue
            element, peak = distance
            shape, of = _shape(element), stages[peak.operand]
            if shape is not None:
                names = _matched(body, of, stage)
                is_same = names is not None and _are_same(of.stores[0].element, element, names)
                (found if is_same and peak.address == of.domain.address else others).add((shape, peak.operand))
    # A shape has no addresses: it must be below the maximum wherever it occurs.
    return found - others


def _matched(body: KernelBody, reduction: Stage, stage: Stage) -> Mapping[str, Dim] | None:
    """The loops of another stage of the same row by the loops of a reduction of whole rows; None if they differ."""
    reduced, own = inner_loops(body, reduction), inner_loops(body, stage)
    is_whole = [loop.extent for loop in reduced] == [loop.extent for loop in own]
    if not is_whole or not all(loop.is_reduction for loop in reduced):
        return None
    return {loop.name: symbol(other.name) for loop, other in zip(reduced, own, strict=True)}


def _distance(node: Apply) -> tuple[Node, Load] | None:
    """The element and the other number of `exp2((element - number) * factor)`, for a positive factor."""
    (exponent,) = node.args
    if isinstance(exponent, Apply) and (exponent.op, *exponent.attributes[:1]) == ("binop", "mul"):
        factors = [arg for arg in exponent.args if isinstance(arg, Constant) and arg.value > 0]
        rest = [arg for arg in exponent.args if not isinstance(arg, Constant)]
        if len(factors) != 1 or len(rest) != 1:
            return None
        (exponent,) = rest
    if not isinstance(exponent, Apply) or (exponent.op, *exponent.attributes[:1]) != ("binop", "sub"):
        return None
    element, number = exponent.args
    return (element, number) if isinstance(number, Load) and not number.conditions else None


def _shape(node: Node) -> Shape | None:
    """None if the node reads anything but operands without conditions."""
    match node:
        case Constant():
            return ("constant", node.dtype, node.value)
        case Load(conditions=()):
            return ("load", node.dtype, node.operand)
        case Apply():
            args = [_shape(arg) for arg in node.args]
            return None if None in args else (node.op, node.dtype, node.attributes, *args)
        case _:
            return None


def _are_same(one: Node, other: Node, names: Mapping[str, Dim]) -> bool:
    """Whether two nodes are equal if the loops of the first are replaced by `names`."""
    match one, other:
        case Load(), Load():
            is_same = substitute(one.address, names) == other.address
            return one.operand == other.operand and is_same and not one.conditions and not other.conditions
        case Apply(), Apply():
            kinds = [(each.op, each.dtype, each.attributes, len(each.args)) for each in (one, other)]
            pairs = zip(one.args, other.args, strict=False)
            return kinds[0] == kinds[1] and all(_are_same(*pair, names) for pair in pairs)
        case Constant(), Constant():
            return (one.dtype, one.value) == (other.dtype, other.value)
        case _:
            return False
