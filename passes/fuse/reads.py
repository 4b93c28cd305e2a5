"""Where an op reads its operands: the places per element, and the axes of the op that each place depends on.

Found by tracing one element of the op, as kernels do.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from tensorkiln import expr

from ..loops.domain import domain_of
from ..loops.index_space import Index, IndexSpace
from ..loops.scalar_dag import Interner, Node
from ..trace.tracer import Conditions, Tracer
from ..trace.traces import TRACES
from ..values import Value

_IN_PLACE = frozenset({"binop", "unary", "ternary", "cast", "contiguous", "contiguous_backward", "detach", "fuse"})
"""Ops that read every operand at the index of their own element, and need no tracing."""
_PREFIX = "e"


@dataclass(frozen=True, slots=True)
class Read:
    """One read of an element of `operand`. `axes` has one entry per axis of the operand: the axes of the reader that
    the index depends on.

    Two reads of an operand by one op are at different places.
    """

    operand: Value
    axes: tuple[tuple[int, ...], ...]


class Reads:
    """The reads of the ops of a graph with these symbols."""

    def __init__(self, symbols: Mapping[str, tuple[int, int]]) -> None:
        self._symbols = symbols
        self._of: dict[Value, tuple[Read, ...]] = {}
        self._known: dict[Hashable, tuple[tuple[int, tuple[tuple[int, ...], ...]], ...]] = {}

    def of(self, value: Value) -> tuple[Read, ...]:
        """The reads for one element of `value`; one of each operand if the op is not traced."""
        if value not in self._of:
            self._of[value] = self._found(value)
        return self._of[value]

    def _found(self, value: Value) -> tuple[Read, ...]:
        if not value.operands:
            return ()
        if value.kind in _IN_PLACE or value.kind not in TRACES or expr.product(value.shape) == 0:
            ranks = {operand: len(operand.shape) for operand in value.operands}
            return tuple(
                Read(operand, tuple((axis,) if rank == len(value.shape) else () for axis in range(rank)))
                for operand, rank in ranks.items()
            )
        # Layers repeat: the reads depend only on an op's kind, fields and shapes.
        numbers = tuple(value.operands.index(operand) for operand in value.operands)
        shapes = tuple(operand.shape for operand in value.operands)
        key = (value.kind, tuple(value.fields.values()), value.shape, shapes, numbers)
        if key not in self._known:
            self._known[key] = tuple((value.operands.index(read.operand), read.axes) for read in self._traced(value))
        return tuple(Read(value.operands[number], axes) for number, axes in self._known[key])

    def _traced(self, value: Value) -> tuple[Read, ...]:
        space = IndexSpace(self._symbols)
        domain = domain_of(value, space, _PREFIX)
        axes = [axis for axis, extent in enumerate(value.shape) if extent != 1]
        numbers = {loop.name: axis for loop, axis in zip(domain.loops, axes, strict=True)}
        tracer = _Recorder(space)
        tracer.define(value, domain.index(value.shape))
        found: list[Read] = []
        for operand, index in tracer.places:
            names = (expr.free_symbols(dim) & numbers.keys() for dim in index)
            found.append(Read(operand, tuple(tuple(sorted(map(numbers.__getitem__, each))) for each in names)))
        return tuple(found)


class _Recorder(Tracer):
    """Traces a single op, and records where it reads its operands."""

    def __init__(self, space: IndexSpace) -> None:
        super().__init__(space, {}, TRACES, Interner())
        self.places: dict[tuple[Value, Index], None] = {}

    def element(self, value: Value, index: Index, conditions: Conditions = ()) -> Node:
        self.places[value, index] = None
        return self.nodes.zero(value.dtype)
