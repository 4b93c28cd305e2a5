"""Several long reductions of a row in one sweep, block by block, while a block is in the cache.

Separate reductions would each read the row again, from memory if it is long. In a sweep each block is reduced by every
reduction in turn. Block results of independent reductions are combined as usual, those of dependent ones by a law
(`sweep_laws.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

from tensorkiln.dtypes import DType
from tensorkiln.expr import free_symbols, symbol

from ..loops.accesses import loads
from ..loops.body import KernelBody, Stage, inner_loops
from ..loops.domain import Loop, extent_of
from ..loops.scalar_dag import Load, Node, indices, walk
from ..loops.substitution import over
from .law_search import Reference, law_of
from .sum_blocks import ROW_TERMS, TOTAL, in_blocks, sums_floats
from .sweep_laws import Comes, Done, Law


@dataclass(frozen=True, slots=True)
class Reduce:
    """Reduce a block by `stage` if the condition `needed` holds, and write the result to a register."""

    register: int
    stage: Stage
    needed: Node | None


@dataclass(frozen=True, slots=True)
class Put:
    """Write a value to a register."""

    register: int
    value: Node


@dataclass(frozen=True, slots=True)
class Result:
    """The `value` that `stage` stores for a row, computed from the totals of a sweep."""

    stage: Stage
    value: Node


@dataclass(frozen=True, slots=True)
class Sweep:
    """Reductions of one row: the loops `over` its blocks, and the loops `within` a block.

    `registers` maps operand numbers beyond those of the body to dtypes; each is a variable of one element. `begin`
    names the reduction kind whose identity initialises a register. For each block the `steps` run in order, then all
    `totals` are updated at once. `results` are by stage number; `looked_for` are the stages whose reductions few blocks
    need.
    """

    over: tuple[Loop, ...]
    within: tuple[Loop, ...]
    registers: Mapping[int, DType]
    begin: Mapping[int, str]
    steps: tuple[Reduce | Put, ...]
    totals: tuple[Put, ...]
    results: Mapping[int, Result]
    looked_for: frozenset[int]

    @property
    def first(self) -> int:
        """The number of the stage in whose place the sweep runs."""
        return min(self.results)


def sweeps_of(body: KernelBody) -> tuple[Sweep, ...]:
    """The sweeps of a kernel: runs of reductions over the same long row, with no other loop over the row in between."""
    runs: list[list[int]] = []
    is_open = False
    for number, stage in enumerate(body.stages):
        if _reduces_a_long_row(body, stage):
            if is_open and body.stages[runs[-1][0]].domain.walks_as(stage.domain):
                runs[-1].append(number)
            else:
                runs.append([number])
            is_open = True
        elif inner_loops(body, stage):
            is_open = False
    found: list[Sweep] = []
    first = len(body.operands)
    for run in runs:
        sweep = _Finder(body, run, first).sweep() if len(run) > 1 else None
        if sweep is not None:
            found.append(sweep)
            first += len(sweep.registers)
    return tuple(found)


def needed_share(elements: int) -> float:
    """The expected share of blocks whose maximum is the largest so far: of n blocks, about 1 + log n."""
    blocks = max(elements // ROW_TERMS, 1)
    return (1 + log(blocks)) / blocks


def _reduces_a_long_row(body: KernelBody, stage: Stage) -> bool:
    """Whether a stage reduces a row longer than one block, and all its loops but the first have constant extents."""
    inner = inner_loops(body, stage)
    if stage.combine is None or not inner or inner != stage.domain.reduction:
        return False
    known = [loop for loop in inner[1:] if isinstance(loop.extent, int)]
    return len(known) == len(inner) - 1 and body.space.largest(extent_of(inner)) > ROW_TERMS


class _Finder:
    """Finds the sweep of a run of reductions; its registers are the operands from number `first` on."""

    def __init__(self, body: KernelBody, run: Sequence[int], first: int) -> None:
        self.body, self.first = body, first
        self.write = body.nodes
        self.loops = inner_loops(body, body.stages[run[0]])
        self.stages = {number: self._over_the_same_loops(body.stages[number]) for number in run}
        self.laws: dict[int, Law | None] = {}
        self.references: list[Reference] = []
        stored = body.stages[run[0] : run[-1] + 1]
        self.own = {entry.operand for stage in stored for entry in stage.stores}

    def sweep(self) -> Sweep | None:
        """The sweep, or None where no two of the reductions can share one."""
        self._find_laws()
        kept = self._that_read_alike()
        return _Program(self, kept).sweep() if len(kept) > 1 else None

    def _over_the_same_loops(self, stage: Stage) -> Stage:
        own = inner_loops(self.body, stage)
        values = {mine.name: symbol(theirs.name) for mine, theirs in zip(own, self.loops, strict=True)}
        loops = [loop for loop in stage.domain.loops if loop not in own]
        return over(self.body, stage, (*loops, *self.loops), values)

    def _find_laws(self) -> None:
        """Find the law of each reduction that the sweep can do; None means that the reduction is independent."""
        for number, stage in self.stages.items():
            element, combine = stage.elements[0], stage.combine
            assert combine is not None, "a run is of reductions"
            if not self._reads_own(element):
                self.laws[number] = None
                result = self.body.nodes.load(element.dtype, stage.stores[0].operand, stage.domain.address, ())
                self.references.append(Reference(number, combine, element, result))
                continue
            law = law_of(combine, element, self.references, self._is_given)
            if law is not None and not self._reads_own(self._spelled(law)):
                self.laws[number] = law

    def _spelled(self, law: Law) -> Node:
        """The element that a law reduces, with a constant in place of the reference's result."""
        other = self.write.zero(law.value.dtype)
        return law.blocks(self.write, Comes(other, other, other))[0].element(other)

    def _that_read_alike(self) -> list[int]:
        """The reductions linked to another one: by a law, in either direction, or by a common operand read along the
        row.
        """
        read = {
            number: {load.operand for load in loads(stage.elements, self.body.nodes) if not self._is_given(load)}
            for number, stage in self.stages.items()
        }
        referred = {law.reference for law in self.laws.values() if law is not None}
        return [
            number
            for number, law in self.laws.items()
            if law is not None
            or number in referred
            or any(read[number] & read[other] for other in self.laws if other != number)
        ]

    def _reads_own(self, node: Node) -> bool:
        """Whether the node reads an operand stored by a stage of the run or in between."""
        return any(load.operand in self.own for load in loads((node,), self.body.nodes))

    def _is_given(self, node: Node) -> bool:
        """Whether the node has the same value throughout the row."""
        names = {loop.name for loop in self.loops}
        found = walk((node,), self.body.nodes)
        return all(names.isdisjoint(free_symbols(index)) for each in found for index in indices(each))


class _Program:
    """Writes the steps of a sweep for a block."""

    def __init__(self, finder: _Finder, kept: Sequence[int]) -> None:
        self.found, self.kept, self.write = finder, kept, finder.write
        self.registers: dict[int, DType] = {}
        self.begin: dict[int, str] = {}
        self.steps: list[Reduce | Put] = []
        self.totals: list[Put] = []
        self.results: dict[int, Result] = {}
        self.looked_for: set[int] = set()
        self.at_hand: dict[int, Load] = {}
        self.done: dict[int, Comes] = {}
        first = finder.stages[kept[0]]
        blocks = in_blocks(finder.body, first, ROW_TERMS)
        self.over, self.within = blocks.over, blocks.within
        self.count = self._register(TOTAL, "sum")
        self.more = self.write.cast(finder.body.nodes.index_value(DType.INT64, extent_of(self.within)), TOTAL)

    def sweep(self) -> Sweep:
        """The sweep of the kept reductions."""
        for number in self.kept:
            law = self.found.laws[number]
            if law is None:
                self._plain(number)
            else:
                self._by_law(number, law)
        self.totals.append(Put(self.count.operand, self.write.binop("add", self.count, self.more)))
        steps, totals, looked_for = tuple(self.steps), tuple(self.totals), frozenset(self.looked_for)
        return Sweep(self.over, self.within, self.registers, self.begin, steps, totals, self.results, looked_for)

    def _plain(self, number: int) -> None:
        stage, write = self.found.stages[number], self.write
        element, combine = stage.elements[0], str(stage.combine)
        block = self._reduced(number, combine, element)
        total = self._register(TOTAL if sums_floats(stage) else element.dtype, combine)
        after = write.combined(combine, total, write.cast(block, total.dtype))
        self.totals.append(Put(total.operand, after))
        self.results[number] = Result(stage, write.cast(total, element.dtype))
        self.done[number] = Comes(block, total, after)

    def _by_law(self, number: int, law: Law) -> None:
        stage, other, write = self.found.stages[number], self.done[law.reference], self.write
        at_hand = self._at_hand(number, law, other)
        reductions = law.blocks(write, other)
        if any(each.needed is not None for each in reductions):
            self.looked_for.add(number)
        blocks = [self._reduced(number, each.combine, each.element(at_hand), each.needed) for each in reductions]
        before = [self._register(dtype, str(stage.combine)) for dtype in law.totals]
        after = law.after(write, Done(blocks, before, other, at_hand, self.count, self.more))
        self.totals += [Put(each.operand, value) for each, value in zip(before, after, strict=True)]
        self.results[number] = Result(stage, law.result(write, before, self.count))

    def _at_hand(self, number: int, law: Law, other: Comes) -> Load:
        """The register with the reference value for the elements of a block, shared by all reductions with this
        reference.
        """
        known = self.at_hand.get(law.reference)
        if known is None:
            known = self.at_hand[law.reference] = self._register(law.value.dtype)
            instead, given = law.instead(self.write, other.block, self.more), None
            if instead is not None:
                given = self._reduced(number, instead.combine, instead.element(other.block), instead.needed)
            self.steps.append(Put(known.operand, law.at_hand(self.write, other.block, self.more, given)))
        return known

    def _reduced(self, number: int, combine: str, element: Node, needed: Node | None = None) -> Load:
        stage = self.found.stages[number]
        stores = (replace(stage.stores[0], element=element),)
        made = replace(stage, combine=combine, elements=(element,), stores=stores)
        register = self._register(element.dtype, combine)
        self.steps.append(Reduce(register.operand, in_blocks(self.found.body, made, ROW_TERMS).stage, needed))
        return register

    def _register(self, dtype: DType, combine: str | None = None) -> Load:
        number = self.found.first + len(self.registers)
        self.registers[number] = dtype
        if combine is not None:
            self.begin[number] = combine
        return self.found.body.nodes.load(dtype, number, 0, ())
