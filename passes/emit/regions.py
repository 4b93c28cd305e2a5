"""Loops and branches at the insertion point: what is emitted inside of a `with` goes into them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from dialect.mlir import ir, scf
from tensorkiln.expr import Dim

from .index_emission import IndexEmitter

Region = AbstractContextManager[IndexEmitter]
"""Code to be filled, and an emitter for what is known there."""


@contextmanager
def loop(
    name: str, first: Dim | ir.Value, last: Dim | ir.Value, step: Dim, index: IndexEmitter
) -> Generator[IndexEmitter]:
    """A loop from `first` to below `last`, and an emitter for its body, where `name` is the loop's index."""
    ends = [index(end) if not isinstance(end, ir.Value) else end for end in (first, last)]
    over = scf.ForOp(*ends, index(step))
    with ir.InsertionPoint(over.body):
        yield index.inside({name: over.induction_variable})
        scf.YieldOp([])


def where(condition: ir.Value, index: IndexEmitter) -> Region:
    """What runs where a condition holds, and an emitter for it."""
    return _inside(scf.IfOp(condition).then_block, index)


def branches(condition: ir.Value, index: IndexEmitter) -> tuple[tuple[bool, Region], tuple[bool, Region]]:
    """What runs where a condition holds, and what runs where it does not."""
    branch = scf.IfOp(condition, has_else=True)
    return (True, _inside(branch.then_block, index)), (False, _inside(branch.else_block, index))


@contextmanager
def _inside(block: ir.Block, index: IndexEmitter) -> Generator[IndexEmitter]:
    with ir.InsertionPoint(block):
        yield index.inside({})
        scf.YieldOp([])
