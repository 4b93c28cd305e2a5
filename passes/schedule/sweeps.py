"""Long reductions of a row in one sweep over it: block by block, while a block is in the cache.

Each of several reductions would read the row again, from memory where it is long. So a block is reduced by one after
the other, and what the blocks come to is a tuple: for reductions that do not know of each other what each comes to, for
others what a law makes of it (`sweep_laws.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, free_symbols, symbol

from ..loops.accesses import loads
from ..loops.body import KernelBody, Stage
from ..loops.domain import Loop, extent_of
from ..loops.scalar_dag import Load, Node, indices, walk
from ..loops.substitution import over
from .sum_blocks import ROW_TERMS, TOTAL, Blocks, in_blocks, sums_floats
from .sweep_laws import Comes, Counts, Law, Reference, Scalars, law_of
from .tiling import inner_loops


@dataclass(frozen=True, slots=True)
class Part:
    """One reduction of a sweep: the stage with this `number`. Other operands are the sweep's `registers`.

    `stage` reduces a block, where that `is_needed`, and its result goes to `block`. `at_hand` is the register from
    which other parts read what they refer to, and that. `after` replaces the `total` when the block is done; the whole
    row comes to `result`.
    """

    number: int
    stage: Stage
    is_needed: Node | None
    block: int
    total: int
    after: Node
    result: Node
    at_hand: tuple[int, Node] | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """Reductions of one row: the loops `over` its blocks, and those `within` one.

    `registers` are operands beyond those of the body, by their dtypes: variables of one element. That of `count` has
    how many elements the blocks before have, and `counted` what replaces it.
    """

    parts: tuple[Part, ...]
    over: tuple[Loop, ...]
    within: tuple[Loop, ...]
    registers: Mapping[int, DType]
    count: int
    counted: Node


def sweeps_of(body: KernelBody) -> tuple[Sweep, ...]:
    """The sweeps of a kernel: several reductions of the same long row, with no other loop over it in between."""
    runs: list[list[int]] = []
    is_open = False
    for number, stage in enumerate(body.stages):
        if _reduces_a_long_row(body, stage):
            if is_open and _walk_alike(body, body.stages[runs[-1][0]], stage):
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
    """The part of the blocks of a row whose maximum is expected to be the largest so far: of n, about 1 + log n."""
    blocks = max(elements // ROW_TERMS, 1)
    return (1 + log(blocks)) / blocks


def _reduces_a_long_row(body: KernelBody, stage: Stage) -> bool:
    inner = inner_loops(body, stage)
    is_row = stage.combine is not None and bool(inner) and inner == stage.domain.reduction
    return is_row and body.space.largest(extent_of(inner)) > ROW_TERMS


def _walk_alike(body: KernelBody, one: Stage, other: Stage) -> bool:
    extents = [[loop.extent for loop in inner_loops(body, stage)] for stage in (one, other)]
    return extents[0] == extents[1]


class _Finder:
    """Finds the sweep of a run of reductions, whose registers are the operands from number `first` on."""

    def __init__(self, body: KernelBody, run: Sequence[int], first: int) -> None:
        self.body, self.first = body, first
        self.write = Scalars(body.nodes)
        self.loops = inner_loops(body, body.stages[run[0]])
        self.stages = {number: self._over_the_same_loops(body.stages[number]) for number in run}
        self.laws: dict[int, Law | None] = {}
        self.references: dict[int, Reference] = {}
        stored = body.stages[run[0] : run[-1] + 1]
        self.own = {entry.operand for stage in stored for entry in stage.stores}
        self.registers: dict[int, DType] = {}

    def sweep(self) -> Sweep | None:
        """The sweep, or None where no two of the reductions can share one."""
        self._find_laws()
        kept = self._that_read_alike()
        return self._made(kept) if len(kept) > 1 else None

    def _over_the_same_loops(self, stage: Stage) -> Stage:
        own = inner_loops(self.body, stage)
        values = {mine.name: symbol(theirs.name) for mine, theirs in zip(own, self.loops, strict=True)}
        loops = [loop for loop in stage.domain.loops if loop not in own]
        return over(self.body, stage, (*loops, *self.loops), values)

    def _find_laws(self) -> None:
        """Find the law of each reduction that the sweep can do; None is that of one that refers to no other."""
        for number, stage in self.stages.items():
            element, combine = stage.elements[0], stage.combine
            assert combine is not None, "a run is of reductions"
            if not self._reads_own(element):
                self.laws[number] = None
                result = self._load(element.dtype, stage.stores[0].operand, stage.domain.address)
                self.references[number] = Reference(combine, element, result)
                continue
            law = law_of(combine, element, self.references, self._is_given)
            if law is not None and not self._reads_own(law.element(self.write, law.value)):
                self.laws[number] = law

    def _that_read_alike(self) -> list[int]:
        """Those that another one refers to, that refer to another, or that read what another reads along the row."""
        read = {number: self._read_along(self.stages[number]) for number in self.laws}
        referred = {law.reference for law in self.laws.values() if law is not None}
        return [
            number
            for number, law in self.laws.items()
            if law is not None
            or number in referred
            or any(read[number] & read[other] for other in self.laws if other != number)
        ]

    def _read_along(self, stage: Stage) -> frozenset[int]:
        found = loads(stage.elements, self.body.nodes)
        return frozenset(load.operand for load in found if not self._is_given(load))

    def _reads_own(self, node: Node) -> bool:
        """Whether the node needs what a stage of the run, or one in between, has stored."""
        return any(load.operand in self.own for load in loads((node,), self.body.nodes))

    def _is_given(self, node: Node) -> bool:
        """Whether the node is the same for the whole row."""
        names = {loop.name for loop in self.loops}
        found = walk((node,), self.body.nodes)
        return all(names.isdisjoint(free_symbols(index)) for each in found for index in indices(each))

    def _load(self, dtype: DType, operand: int, address: Dim = 0) -> Load:
        return self.body.nodes.load(dtype, operand, address, ())

    def _register(self, dtype: DType) -> Load:
        number = self.first + len(self.registers)
        self.registers[number] = dtype
        return self._load(dtype, number)

    def _made(self, kept: Sequence[int]) -> Sweep:
        write, nodes, referred = self.write, self.body.nodes, {law.reference for law in self.laws.values() if law}
        count = self._register(TOTAL)
        at_hand = {number: self._register(self.stages[number].elements[0].dtype) for number in referred}
        blocked = {number: self._blocked(number, at_hand) for number in kept}
        over_blocks, within = next((blocks.over, blocks.within) for blocks in blocked.values())
        more = write.cast(nodes.index_value(DType.INT64, extent_of(within)), TOTAL)
        counts, done = Counts(count, more), dict[int, Comes]()
        parts: list[Part] = []
        for number in kept:
            stage, law = self.stages[number], self.laws[number]
            dtype = stage.elements[0].dtype
            block = self._register(dtype)
            is_needed = None
            if law is None:
                total = self._register(TOTAL if sums_floats(stage) else dtype)
                after = write.together(str(stage.combine), total, write.cast(block, total.dtype))
                result = write.cast(total, dtype)
            else:
                total, other = self._register(law.total), done[law.reference]
                is_needed = law.is_needed(write, other)
                after = law.after(write, block, total, other, at_hand[law.reference], counts)
                result = law.result(write, total, other.before, count)
            seen = None
            if number in at_hand:
                seen = at_hand[number].operand, self._shown(number, block, more)
            done[number] = Comes(block, total, after)
            made = blocked[number].stage
            parts.append(Part(number, made, is_needed, block.operand, total.operand, after, result, seen))
        return Sweep(tuple(parts), over_blocks, within, self.registers, count.operand, write.two("add", count, more))

    def _blocked(self, number: int, at_hand: Mapping[int, Node]) -> Blocks:
        stage, law = self.stages[number], self.laws[number]
        element = stage.elements[0] if law is None else law.element(self.write, at_hand[law.reference])
        stores = tuple(replace(entry, element=element) for entry in stage.stores)
        return in_blocks(self.body, replace(stage, elements=(element,), stores=stores), ROW_TERMS)

    def _shown(self, number: int, block: Node, count: Node) -> Node:
        """What a block's elements read of a reduction to which they refer."""
        law = next(law for law in self.laws.values() if law is not None and law.reference == number)
        return law.at_hand(self.write, block, count)
