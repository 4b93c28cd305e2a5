"""Merge chains of kernels: a product, stages over its rows, and a product of the result, as in attention.

The intermediate values are as large as the product of two extents. The merged kernel computes one block of rows at a
time and keeps none of them in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..loops.accesses import loads
from ..loops.contraction import Contraction, match_contraction
from ..loops.domain import Loop, extent_of
from ..loops.index_space import IndexSpace
from ..loops.scalar_dag import Interner, Load, Node
from ..values import Value
from .groups import Group, is_within_row
from .windows import Windows


@dataclass(frozen=True)
class Chains:
    """Finds chains among groups; `elements` is the scalar program of each root, `kept` the values that must be in
    memory, `prepared` those that are the same at every call.
    """

    groups: Sequence[Group]
    elements: Mapping[Value, Node]
    windows: Windows
    space: IndexSpace
    nodes: Interner
    kept: Collection[Value]
    prepared: Collection[Value]

    def merged(self) -> list[Group]:
        """The groups, with each chain merged into one group in the place of its last."""
        home = {root: number for number, group in enumerate(self.groups) for root in group.roots}
        readers: dict[Value, set[int]] = {}
        for number, group in enumerate(self.groups):
            for value in group.all_reads() | group.all_unread():
                readers.setdefault(value, set()).add(number)
        made: dict[int, Group] = {}
        taken: set[int] = set()
        for number, group in enumerate(self.groups):
            found = self._chain(number, home) if group.is_contraction else None
            if found is None or not taken.isdisjoint(found):
                continue
            inside = [root for part in found[:-1] for root in self.groups[part].roots]
            if all(root not in self.kept and readers.get(root, set[int]()) <= set(found) for root in inside):
                made[number] = self._one([self.groups[part] for part in found])
                taken |= set(found)
        left = [number for number in range(len(self.groups)) if number in made or number not in taken]
        return [made.get(number, self.groups[number]) for number in left]

    def _chain(self, last: int, home: Mapping[Value, int]) -> tuple[int, int, int] | None:
        """The group numbers of the chain that ends in the contraction `last`, in order."""
        second = self._contraction(self.groups[last])
        middle = -1 if second is None else home.get(self._value(second.left.load), -1)
        if second is None or middle < 0 or self.groups[middle].is_contraction or self.groups[middle].is_opaque:
            return None
        before = {home[value] for value in self.groups[middle].all_reads() if value in home}
        firsts = [number for number in before if self.groups[number].is_contraction]
        first = self._contraction(self.groups[firsts[0]]) if len(firsts) == 1 else None
        if first is None or not self._fit(first, second, [self.groups[each] for each in (firsts[0], middle, last)]):
            return None
        return firsts[0], middle, last

    def _contraction(self, group: Group) -> Contraction | None:
        root = group.roots[0]
        if root.kind != "reduce_axis":
            return None
        combine, domain = root.text("reduce_op_kind"), group.domains[root]
        return match_contraction(domain, combine, self.elements[root], self.nodes, self.space)

    def _fit(self, first: Contraction, second: Contraction, parts: Sequence[Group]) -> bool:
        """Whether the parts can be computed row by row: both products have the same rows."""
        opening, middle, last = parts
        rows = (*first.batch, *first.rows)
        for contraction, group in ((first, opening), (second, last)):
            outer = (*contraction.batch, *contraction.rows)
            is_plain = contraction.rounding is None and contraction.dtype is first.dtype
            if not is_plain or group.domains[group.roots[0]].parallel != (*outer, *contraction.columns):
                return False
            if len(outer) != len(rows) or len(contraction.batch) != len(first.batch):
                return False
        # A product over part of the row only, as behind a gated activation, does not end a chain.
        if extent_of(second.depth) != extent_of(first.columns):
            return False
        inside = {*opening.roots, *middle.roots}
        right = {self._value(each.right.load) for each in (first, second)}
        # A chain packs its right operands for each block of rows, but what is prepared can be packed in advance.
        if (
            not right.isdisjoint(inside)
            or not right.isdisjoint(self.prepared)
            or second.left.load.dtype is not second.dtype
        ):
            return False
        if len({part.is_prepared for part in parts}) > 1:
            return False
        behind = [self._value(load) for root in last.roots[1:] for load in loads((self.elements[root],), self.nodes)]
        if not inside.isdisjoint(behind):
            return False
        return all(self._reads_its_row(root, part, inside, rows) for part in parts for root in part.roots)

    def _reads_its_row(self, root: Value, part: Group, sources: Collection[Value], rows: Sequence[Loop]) -> bool:
        """Whether all that a root reads of the `sources` lies in its own row of the chain."""
        domain, count = part.domains[root], len(rows)
        if [loop.extent for loop in domain.parallel[:count]] != [loop.extent for loop in rows]:
            return False
        for load in loads((self.elements[root],), self.nodes):
            value, located = self.windows.located(load)
            if value in sources and not is_within_row(located, value, domain, count, self.space):
                return False
        return True

    def _value(self, load: Load) -> Value:
        return self.windows.located(load)[0]

    def _one(self, parts: Sequence[Group]) -> Group:
        opening = self._contraction(parts[0])
        assert opening is not None, "a chain begins with a contraction"
        made = Group([], len(opening.batch) + len(opening.rows), {}, {}, {}, is_prepared=parts[0].is_prepared)
        for part in parts:
            made.take(part)
        return made
