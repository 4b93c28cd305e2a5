"""Loops and branches as context managers: code emitted inside a `with` goes into their body."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager

from dialect.mlir import ir, scf
from tensorkiln.expr import Dim

from ..loops.domain import Loop
from .index_emission import IndexEmitter

Region = AbstractContextManager[IndexEmitter]
"""A region to fill, and the index emitter for it."""


@contextmanager
def loop(
    name: str, first: Dim | ir.Value, last: Dim | ir.Value, step: Dim, index: IndexEmitter
) -> Generator[IndexEmitter]:
    """A loop over `first .. last - 1` by `step`; yields an emitter for its body, in which `name` is the loop index."""
    ends = [index(end) if not isinstance(end, ir.Value) else end for end in (first, last)]
    over = scf.ForOp(*ends, index(step))
    with ir.InsertionPoint(over.body):
        yield index.inside({name: over.induction_variable})
        scf.YieldOp([])


@contextmanager
def nest(loops: Sequence[Loop], *rows: IndexEmitter) -> Generator[Sequence[IndexEmitter]]:
    """Loops inside each other, for one row or for several at once; yields an emitter for the innermost body by row."""
    with ExitStack() as inside:
        for each in loops:
            first = inside.enter_context(loop(each.name, 0, each.extent, 1, rows[0]))
            rows = (first, *(row.inside({each.name: first.names[each.name]}) for row in rows[1:]))
        yield rows


def where(condition: ir.Value, index: IndexEmitter) -> Region:
    """The region that runs if the condition holds."""
    return _inside(scf.IfOp(condition).then_block, index)


def branches(condition: ir.Value, index: IndexEmitter) -> tuple[tuple[bool, Region], tuple[bool, Region]]:
    """The regions that run if the condition holds (True) and if not (False)."""
    branch = scf.IfOp(condition, has_else=True)
    return (True, _inside(branch.then_block, index)), (False, _inside(branch.else_block, index))


@contextmanager
def _inside(block: ir.Block, index: IndexEmitter) -> Generator[IndexEmitter]:
    with ir.InsertionPoint(block):
        yield index.inside({})
        scf.YieldOp([])
