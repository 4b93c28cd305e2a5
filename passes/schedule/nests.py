"""The loop nests of a row: a stage, or each piece of it, and which loop is in vectors.

A map that chooses by the index of a loop, such as a concatenation, is cut into pieces in which the choice is constant:
no element needs a select, and the loops can be vectorised. So is a map with conditions on its last two loops, such as
padding.

The choice is made once, for a candidate: its record has an axis for each loop of each nest, and `recorded_nests` reads
the choice back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import count, pairwise
from math import prod
from typing import Final, NamedTuple

from tensorkiln import expr
from tensorkiln.expr import Dim, Expr, free_symbols
from tensorkiln.schedule import KernelItem, Vectorize

from ..loops.accesses import loads
from ..loops.body import KernelBody, Stage, inner_loops
from ..loops.domain import Loop, is_window
from ..loops.index_space import linear_form
from ..loops.scalar_dag import Apply, Choose, Guard, Interner, Load, Node, conditions_of, depends_on, indices, walk
from ..loops.substitution import over
from .choice import bounded
from .record import PlacedAxis, nested

LEAST_EXTENT: Final = 4
"""Least points of a loop for which vectors, or pieces, pay."""
MOST_PIECES: Final = 32
"""Most pieces of a map: each has code of its own. The 13 of the sines and cosines of a position compile in the time of
a whole map, and run in a tenth of it.
"""
PLAIN: Final = frozenset(
    {("binop", kind) for kind in ("add", "sub", "mul", "fdiv", "max", "min", "cmplt", "cmpne", "xor", "or", "and")}
    | {("unary", kind) for kind in ("neg", "sqrt", "recip")}
    | {("ternary", kind) for kind in ("where", "mulacc")}
)
"""Operations that take a few instructions on vectors and scalars alike."""
IN_VECTORS: Final = PLAIN | {("unary", "exp2")}
"""Operations on vectors of points; stages with others are left to linalg. Behind a padding, LLVM would not vectorise an
activation with an exponential.
"""
MOST_STEP: Final = 1 << 24
"""Largest step of an index between two points: the offsets of a vector's lanes must fit 32 bits."""


class Strip(NamedTuple):
    """A loop in vectors of `lanes` points, with masks for conditions on the loop and for its end."""

    loop: Loop
    lanes: int


@dataclass(frozen=True, slots=True)
class Nest:
    """A stage or a piece of one, and its loops inside a row. Without a `strip` it is left to linalg and LLVM."""

    stage: Stage
    loops: tuple[Loop, ...]
    strip: Strip | None = None

    @property
    def along(self) -> Loop:
        """The loop of vectors, or else the innermost: reductions run around the parallel loops."""
        return self.strip.loop if self.strip else sorted(self.loops, key=lambda loop: not loop.is_reduction)[-1]

    def is_guarded(self, nodes: Interner) -> bool:
        """Whether it reads under conditions on its innermost loop that vector masks cannot express."""
        if not self.loops or self.strip:
            return False
        return any(asks(load, self.along) for load in loads(self.stage.elements, nodes))


def nests_of(body: KernelBody, masked_lanes: int) -> list[list[Nest]]:
    """The nests of each stage; a masked vector has `masked_lanes` points, 0 if the target has none."""

    def strip(stage: Stage, loops: Sequence[Loop]) -> Strip | None:
        loop = _strip_loop(stage, loops, body.nodes, masked_lanes) if masked_lanes else None
        return None if loop is None else Strip(loop, masked_lanes)

    return _nests(body, strip)


def recorded_nests(body: KernelBody, item: KernelItem) -> list[list[Nest]]:
    """The nests of each stage, with the strips of a schedule record."""
    lanes = {hint.axis: hint.width for hint in item.hints if isinstance(hint, Vectorize) and hint.masked}
    axes = count(len(body.rows))

    def strip(stage: Stage, loops: Sequence[Loop]) -> Strip | None:
        own = [(loop, next(axes)) for loop in loops]
        return next((Strip(loop, lanes[axis]) for loop, axis in own if axis in lanes), None)

    return _nests(body, strip)


def _nests(body: KernelBody, strip: Callable[[Stage, Sequence[Loop]], Strip | None]) -> list[list[Nest]]:
    return [
        [Nest(part, loops, strip(part, loops)) for part, loops in pieces_of(body, stage, inner_loops(body, stage))]
        for stage in body.stages
    ]


def axes_of(body: KernelBody, nest: Nest, width: int) -> list[PlacedAxis]:
    """The axes of a nest; a loop of vectors without masks has the given width."""
    if not nest.loops:
        return []
    loops, along = bounded(body, nest.loops), nest.loops.index(nest.along)
    if nest.is_guarded(body.nodes):
        return nested(loops, along, scalar="guarded")
    return nested(loops, along, nest.strip.lanes if nest.strip else width, is_masked=nest.strip is not None)


def _strip_loop(stage: Stage, loops: Sequence[Loop], nodes: Interner, lanes: int) -> Loop | None:
    """The loop to run in masked vectors of `lanes` points, if vectors can express the stage, and it is a window, has
    conditions on a loop, or is a map whose last loop is one vector. Other maps and long reductions are left to linalg.
    """
    parallel = [loop for loop in loops if not loop.is_reduction]
    if not parallel:
        return None
    last = parallel[-1]
    if isinstance(last.extent, int) and last.extent < LEAST_EXTENT:
        return None
    if not is_window(loops):
        is_product = len(parallel) == 1 and _multiplies_matrix(stage, last, nodes)
        return last if is_product and takes_vectors(stage, last, nodes) else None
    if stage.combine is None and not any(asks(load, last) for load in loads(stage.elements, nodes)):
        is_vector = last.extent == lanes and _reads_lines(stage, last, nodes)
        return last if is_vector and takes_vectors(stage, last, nodes) else None
    return last if takes_vectors(stage, last, nodes) else None


def _multiplies_matrix(stage: Stage, column: Loop, nodes: Interner) -> bool:
    """Whether the stage sums products of floats, of which all columns share one factor and read the others in lines."""
    element, *others = stage.elements
    if others or stage.combine != "sum" or not isinstance(element, Apply) or not element.dtype.is_float:
        return False
    is_product = (element.op, *element.attributes[:1]) == ("binop", "mul")
    is_shared = [not depends_on(factor, column.name, nodes) for factor in element.args]
    return is_product and _reads_lines(stage, column, nodes) and sum(is_shared) == 1


def _reads_lines(stage: Stage, along: Loop, nodes: Interner) -> bool:
    """Whether neighbouring points read neighbouring elements, or the same."""
    return all(_step(load.address, along) in (0, 1) for load in loads(stage.elements, nodes))


def takes_vectors(stage: Stage, along: Loop, nodes: Interner, loaded: AbstractSet[Load] = frozenset()) -> bool:
    """Whether vectors along a loop can express the stage, apart from the reads that are `loaded` in another way."""
    found = list(walk(stage.elements, nodes))
    in_memory = {node.dtype for node in found if isinstance(node, Load)} | {entry.root.dtype for entry in stage.stores}
    if any(dtype.is_bool for dtype in in_memory):
        return False
    is_line = not stage.stores or _step(stage.domain.address, along) == 1
    return is_line and all(node in loaded or _takes_vectors(node, along, nodes) for node in found)


def asks(load: Load, loop: Loop) -> bool:
    """Whether a condition of the read depends on the loop."""
    return any(loop.name in free_symbols(condition) for condition in load.conditions if isinstance(condition, Expr))


def _step(dim: Dim, loop: Loop) -> Dim | None:
    form = linear_form(dim, [loop.name])
    return None if form is None else form[1][0]


def _takes_vectors(node: Node, loop: Loop, nodes: Interner) -> bool:
    """Whether everything that depends on the loop does so with small constant steps."""
    for dim in indices(node):
        step = None if not free_symbols(dim).isdisjoint(nodes.dynamic) else _step(dim, loop)
        if not isinstance(step, int) or abs(step) > MOST_STEP:
            return False
    if isinstance(node, Apply):
        return node.op in ("cast", "bitcast") or (node.op, *node.attributes[:1]) in IN_VECTORS
    if isinstance(node, Load) and asks(node, loop) and _step(node.address, loop) == 0:
        return False
    return all(isinstance(condition, int | Expr) for condition in conditions_of(node))


Piece = tuple[Stage, tuple[Loop, ...]]
"""A stage and its loops inside a row."""


def pieces_of(body: KernelBody, stage: Stage, inner: Sequence[Loop]) -> list[Piece]:
    """The stage, or stages that each compute a part of it if it selects by the index of a loop inside a row, or has
    conditions on the last two.
    """
    whole: Piece = (stage, tuple(inner))
    if stage.combine is not None:
        return [whole]
    chosen = _conditions(body, stage, Choose)
    cuts = {loop: _cuts(loop, chosen) for loop in inner}
    asked = _conditions(body, stage, Guard, Load)
    if len(inner) > 1 and any(inner[-1].name in free_symbols(each) for each in asked):
        # The rows of a padded image that lie outside are stored apart: inside, only the masks of columns are left.
        cuts[inner[-2]] = _cuts(inner[-2], chosen | asked)
    if not any(cuts.values()) or prod(len(places) + 1 for places in cuts.values()) > MOST_PIECES:
        return [whole]
    pieces = [whole]
    for loop, places in cuts.items():
        if places:
            pieces = [part for piece in pieces for part in _cut(body, piece, loop, places)]
    return pieces


def _conditions(body: KernelBody, stage: Stage, *kinds: type[Choose | Guard | Load]) -> set[Expr]:
    """The conditions on indices of the nodes of these kinds."""
    found = (node for node in walk(stage.elements, body.nodes) if isinstance(node, kinds))
    return {each for node in found for each in node.conditions if isinstance(each, Expr)}


def _cuts(loop: Loop, conditions: set[Expr]) -> list[int]:
    """The indices at which a condition that depends on this loop alone starts or stops to hold."""
    if not isinstance(loop.extent, int) or loop.extent < LEAST_EXTENT:
        return []
    found: set[int] = set()
    for condition in conditions:
        form = linear_form(condition, [loop.name])
        offset, (step,) = form if form is not None else (0, (0,))
        if isinstance(offset, int) and isinstance(step, int) and step != 0:
            # It holds from -offset/step on, rounded up, or up to there, rounded down.
            found.add(-(offset // step) if step > 0 else offset // -step + 1)
    return sorted(place for place in found if 0 < place < loop.extent)


def _cut(body: KernelBody, piece: Piece, loop: Loop, places: Sequence[int]) -> list[Piece]:
    stage, inner = piece
    parts: list[Piece] = []
    assert isinstance(loop.extent, int), "a loop that is cut has a known extent"
    for number, (first, end) in enumerate(pairwise((0, *places, loop.extent))):
        name = f"{loop.name}_{number}"
        value = expr.add(body.space.add(name, end - first), first)
        part = Loop(name, end - first)
        renamed = tuple(part if each == loop else each for each in stage.domain.loops)
        made = over(body, stage, renamed, {loop.name: value})
        parts.append((made, tuple(part if each == loop else each for each in inner)))
    return parts
