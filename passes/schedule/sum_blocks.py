"""Cut long sums of floats into blocks.

An accumulator that adds n values loses up to n roundings of its own magnitude. So an accumulator adds one block only,
and the block sums are added in float64: the error of a sum does not depend on its length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

from ..loops.body import KernelBody, Stage, inner_loops
from ..loops.domain import Loop, extent_of
from ..loops.substitution import over
from .choice import bounded
from .tiling import cut

ACCUMULATOR_TERMS = 512
"""Terms of a block if each sum has one accumulator."""
ROW_TERMS = 4096
"""Terms of a block of a row on a CPU, whose values are spread over a few vectors of accumulators."""
TOTAL = DType.FLOAT64
"""The dtype in which block sums are added."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """`stage` reduces one block, by its loops `within`; the loops `over` the blocks, outermost first, surround it."""

    stage: Stage
    over: tuple[Loop, ...]
    within: tuple[Loop, ...]

    @property
    def columns(self) -> tuple[Loop, ...]:
        """The parallel loops inside a row, one sum per index; empty if a row has one sum."""
        return tuple(loop for loop in self.within if not loop.is_reduction)


def sums_floats(stage: Stage) -> bool:
    """Whether each term adds a rounding error that blocks would bound. A product rounds too, but its order makes no
    difference.
    """
    return stage.combine == "sum" and stage.elements[0].dtype.is_float


def sum_blocks(body: KernelBody, stage: Stage) -> Blocks | None:
    """The blocks of a stage that may sum more floats than fit one block, or None for any other stage."""
    terms = stage.domain.reduction
    limit = ROW_TERMS if inner_loops(body, stage) == terms else ACCUMULATOR_TERMS
    is_long = body.space.largest(extent_of(terms)) > limit
    return in_blocks(body, stage, limit) if is_long and sums_floats(stage) else None


def in_blocks(body: KernelBody, stage: Stage, limit: int) -> Blocks:
    """The stage in blocks of at most `limit` terms."""
    terms, space = stage.domain.reduction, body.space

    def most(first: int) -> int:
        return space.largest(extent_of(terms[first:]))

    number = next(number for number in range(len(terms)) if most(number + 1) <= limit)
    block, piece, position = cut(space, terms[number], limit // max(most(number + 1), 1))
    blocks = (*terms[:number], block)
    loops = [piece if loop == terms[number] else loop for loop in stage.domain.loops if loop not in terms[:number]]
    made = over(body, stage, (*blocks, *loops), {terms[number].name: position})
    return Blocks(made, blocks, tuple(loop for loop in inner_loops(body, made) if loop not in blocks))


def sums_of(body: KernelBody, stages: Mapping[int, Stage]) -> dict[int, Blocks]:
    """The blocks of those stages, by number, that are summed in blocks."""
    found = ((number, sum_blocks(body, stage)) for number, stage in stages.items())
    return {number: blocks for number, blocks in found if blocks is not None}


def totals_of(body: KernelBody, blocks: Blocks) -> Dim:
    """The number of sums per row."""
    return extent_of(bounded(body, blocks.columns))
