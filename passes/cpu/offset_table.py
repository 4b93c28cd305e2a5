"""Tables of linear forms over a flattened range of loops: the address of each row or column of a block, and its
conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from dialect.mlir import arith, func, ir, memref
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import strided_view
from passes.emit.regions import loop
from passes.loops.domain import Loop
from passes.loops.index_space import IndexSpace
from passes.scalar import mlir_scalar
from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, symbol

from .shared_functions import shared_function


def table_dtypes(count: int) -> tuple[DType, ...]:
    """The dtypes of the tables of an operand: that of its outer addresses, then all others."""
    return (DType.INT64, *[DType.INT32] * (count - 1))[:count]


def table_types(count: int) -> list[ir.Type]:
    """The types of the tables of an operand in memory."""
    return [ir.MemRefType.get([], mlir_scalar(dtype)) for dtype in table_dtypes(count)]


def fill_tables(
    module: ir.Operation,
    tables: Sequence[ir.Value],
    forms: Sequence[tuple[Dim, Sequence[Dim]]],
    loops: Sequence[Loop],
    start: Dim,
    count: Dim,
    index: IndexEmitter,
) -> None:
    """Store into `tables[t][i]` the value of form `t`, `(base, stride per loop)`, at the flat index `start + i`.

    There are `count` entries; a flat index beyond the end of the loops is clamped to the last.
    """
    if not tables:
        return
    ranks = max(len(loops), 1)
    words = [ir.MemRefType(table.type).element_type for table in tables]
    name = f"table_{'_'.join(map(str, words))}x{ranks}"
    scalars = 3 + (ranks - 1) + len(tables) * (1 + ranks)
    types = [*(ir.MemRefType.get([], word) for word in words), *[ir.IndexType.get()] * scalars]

    def define(arguments: Sequence[ir.Value]) -> None:
        _define(arguments[: len(tables)], arguments[len(tables) :], ranks)

    # Vectorising the loop takes a seventh of the compile of a product; a block has only a few hundred entries.
    shared_function(module, name, types, define, stays_scalar=True)
    extents: list[Dim] = [each.extent for each in loops] or [1]
    values: list[Dim] = [start, count, expr.sub(expr.product(extents), 1), *extents[1:]]
    for base, strides in forms:
        values += [base, *(strides or [0])]
    func.CallOp([], name, [*tables, *(index(value) for value in values)])


def entry_of(table: ir.Value, place: Dim, index: IndexEmitter) -> ir.Value:
    """The entry of a table at `place`, as an index."""
    return arith.index_cast(ir.IndexType.get(), memref.load(strided_view(table, place, (), (), index), []))


def _define(tables: Sequence[ir.Value], scalars: Sequence[ir.Value], ranks: int) -> None:
    names = {"start": scalars[0], "count": scalars[1], "last": scalars[2]}
    names |= {f"extent{rank}": scalars[2 + rank] for rank in range(1, ranks)}
    coefficients = scalars[2 + ranks :]
    space = IndexSpace({name: (0, 1 << 40) for name in ("start", "count", "last")})
    for rank in range(1, ranks):
        space.bound(f"extent{rank}", 1, 1 << 40)
    index = IndexEmitter(space, names)
    with loop("entry", 0, symbol("count"), 1, index) as here:
        space.bound("entry", 0, 1 << 40)
        flat = expr.minimum(expr.add(symbol("start"), symbol("entry")), symbol("last"))
        shape: list[Dim] = [1, *(symbol(f"extent{rank}") for rank in range(1, ranks))]
        positions = [here(position) for position in space.unflatten(flat, shape)]
        for number, table in enumerate(tables):
            base, *strides = coefficients[number * (1 + ranks) : (number + 1) * (1 + ranks)]
            terms = (arith.muli(position, stride) for position, stride in zip(positions, strides, strict=True))
            value = reduce(arith.addi, terms, base)
            entry = strided_view(table, symbol("entry"), (), (), here)
            memref.store(arith.index_cast(ir.MemRefType(table.type).element_type, value), entry, [])
