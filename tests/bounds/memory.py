"""Memory that a kernel addresses: buffers, and views of them by reinterpret casts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dialect.mlir import ir
from tensorkiln import expr
from tensorkiln.expr import Dim

from .facts import Facts


@dataclass(slots=True)
class Table:
    """Entries stored by a loop: `value` at index `entry`, for `entry` in `0 .. last`.

    Unknowns in `value` of rank `first_unknown` or higher differ between iterations.
    """

    entry: str
    last: Dim
    value: Dim
    first_unknown: int


@dataclass(slots=True, eq=False)
class Memory:
    """Memory of `elements` elements, and the last table stored there."""

    name: str
    elements: Dim
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A strided view of a buffer; the element at index `i` is at `offset + sum(i * stride)`."""

    buffer: Memory
    offset: Dim = 0
    sizes: tuple[Dim, ...] = ()
    strides: tuple[Dim, ...] = ()

    def address(self, index: tuple[Dim, ...]) -> Dim:
        if not index:
            return self.offset
        return expr.add(self.offset, *(expr.mul(i, stride) for i, stride in zip(index, self.strides, strict=True)))


def cast_view(op: Any, source: View, integer: Callable[[Any], Dim]) -> View:
    """The view of a `memref.reinterpret_cast` of `source`."""
    dynamic = ir.ShapedType.get_dynamic_size()
    operands = iter(list(op.operands)[1:])
    parts = [
        [integer(next(operands)) if size in (dynamic, _DYNAMIC_STRIDE) else size for size in _sizes(op, name)]
        for name in ("static_offsets", "static_sizes", "static_strides")
    ]
    (offset,), sizes, strides = parts
    return View(source.buffer, offset, tuple(sizes), tuple(strides))


_DYNAMIC_STRIDE = ir.ShapedType.get_dynamic_stride_or_offset()


def _sizes(op: Any, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))


@dataclass(slots=True)
class Entries:
    """Reads of tables; equal entries give the same unknowns at every read."""

    facts: Facts
    _copies: dict[tuple[str, Dim], Dim] = field(default_factory=dict[tuple[str, Dim], Dim])

    def read(self, table: Table, place: Dim) -> Dim:
        """The value of `table` at index `place`."""
        return self._at(table, place, table.value)

    def _at(self, table: Table, place: Dim, dim: Dim) -> Dim:
        unknowns = self.facts.unknowns
        values: dict[str, Dim] = {}
        # Copies are made in the order of their originals: bounds are over earlier unknowns.
        for name in sorted(expr.free_symbols(dim), key=lambda name: unknowns[name].rank if name in unknowns else -1):
            if name == table.entry:
                values[name] = place
            elif name in unknowns and unknowns[name].rank >= table.first_unknown:
                values[name] = self._copy(table, place, name)
        return expr.substitute(dim, values)

    def _copy(self, table: Table, place: Dim, name: str) -> Dim:
        key = (name, place)
        if key not in self._copies:
            known = self.facts.unknowns[name]
            lowers, uppers = (
                [self._at(table, place, bound) for bound in side] for side in (known.lowers, known.uppers)
            )
            definition = None if known.definition is None else self._at(table, place, known.definition)
            self._copies[key] = self.facts.new(lowers, uppers, definition)
        return self._copies[key]
