"""The operands of a contraction in the layouts that its tiles read, and the memory that these take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from passes.loops.accesses import Access
from passes.loops.contraction import Contraction
from passes.loops.domain import Loop, extent_of
from passes.loops.index_space import IndexSpace
from passes.schedule.choice import Scratch

from . import narrow_products
from .blocking import Blocking
from .few_rows import FEW_ROWS
from .offset_table import table_dtypes
from .packing import InPlace, InRows, Packed, Source, in_place, in_runs, is_addressable, packed_of, source_of


@dataclass(frozen=True, slots=True)
class Factors:
    """A contraction and the layouts in which its operands are read."""

    parts: Contraction
    left: Source | Packed | InRows | InPlace
    right: Source | Packed
    steps: int = 1
    """Steps of the depth in an element of a packed operand: several if both are packed narrow integers."""

    @property
    def are_bytes(self) -> bool:
        """Whether both operands are bytes to pack, whose products are added in 32 bits."""
        left, right = self.left, self.right
        return (
            isinstance(left, Source)
            and isinstance(right, Source)
            and self.parts.dtype in narrow_products.SUMS
            and {left.dtype, right.dtype} <= narrow_products.BYTES
        )

    @property
    def streams(self) -> bool | None:
        """Whether the right operand is read unpacked because the rows are few; None if that depends on the run-time
        rows.
        """
        right, rows = self.right, extent_of(self.parts.rows)
        if not isinstance(self.left, Source) or not isinstance(right, Source) or self.parts.run:
            return False
        if not right.is_contiguous or right.conditions or right.dtype is not self.parts.dtype:
            return False
        return rows <= FEW_ROWS if isinstance(rows, int) else None


def factors_of(parts: Contraction, names: Sequence[str], lanes: int, *, together: int = 1) -> Factors | None:
    """The operands of a contraction with loops called `names`; None if an operand is in panels of other loops.

    A right operand in contiguous runs of whole vectors of `lanes` elements is read as panels. Vectors of a target add
    the products of so many narrow integers `together`.
    """
    left = _operand(parts.left, parts, parts.rows, (parts.rows, parts.depth), names)
    right = in_runs(parts.right, parts, names, lanes)
    if right is None:
        right = _operand(parts.right, parts, parts.columns, (parts.depth, parts.columns), names)
    if left is None or right is None:
        return None
    if isinstance(left, Source) and isinstance(right, Source) and parts.dtype in narrow_products.SUMS:
        return Factors(parts, left, right, narrow_products.together(left.dtype, right.dtype, together))
    return Factors(parts, left, right)


def are_addressable(parts: Contraction, space: IndexSpace) -> bool:
    """Whether the tables of both operands have enough bits."""
    pairs = ((parts.left, parts.depth), (parts.right, parts.columns))
    return all(is_addressable(access, inner, space) for access, inner in pairs)


def run_in_memory(parts: Contraction, lanes: int) -> int:
    """Columns of a run of a block of the result whose rows follow each other; 0 if whole rows of the block do."""
    return parts.run if parts.run % lanes == 0 else 0


def left_in_place(factors: Factors, blocking: Blocking) -> Factors:
    """The same factors, with the left operand read in place if tiles of this blocking can."""
    left = factors.left
    if not isinstance(left, Source):
        return factors
    tile = (blocking.tile_rows, blocking.vectors)
    placed = in_place(left, factors.parts.dtype, tile, (blocking.block_columns, blocking.block_depth))
    return factors if placed is None else replace(factors, left=placed)


def _operand(
    access: Access,
    parts: Contraction,
    tiled: Sequence[Loop],
    loops: tuple[Sequence[Loop], Sequence[Loop]],
    names: Sequence[str],
) -> Source | Packed | None:
    if access.panels is None:
        return source_of(access, *loops)
    return packed_of(access, access.panels, parts.batch, tiled, parts.depth, names)


def product_scratch(factors: Factors, blocking: Blocking) -> list[Scratch]:
    """Scratch buffers for packed blocks of the operands to pack, then for the offset tables of both operands."""
    scratch = [
        Scratch(factors.parts.dtype, elements // factors.steps)
        for source, elements in (
            (factors.left, blocking.block_rows * blocking.block_depth),
            (factors.right, blocking.block_depth * blocking.block_columns),
        )
        if isinstance(source, Source)
    ]
    for source, outer, inner in (
        (factors.left, blocking.block_rows, blocking.block_depth),
        (factors.right, blocking.block_depth, blocking.block_columns),
    ):
        sizes = [*[outer] * len(source.forms), *[inner] * source.inner_tables]
        scratch += [Scratch(*table) for table in zip(table_dtypes(len(sizes)), sizes, strict=True)]
    return scratch
