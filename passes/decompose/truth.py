"""Normalise the caller's bools, in which any nonzero byte is true, to 0 and 1 where no kernel would."""

from __future__ import annotations

from typing import Final

from dialect.memory import ContiguousOp
from dialect.mlir import ir
from dialect.types import type_of

_AS_IT_IS: Final = frozenset({"func.return", "kiln.copy", "kiln.custom", "kiln.while"})
"""Ops that pass bytes on without a kernel; a kernel would store every bool as 0 or 1."""


def make_truths_plain(block: ir.Block) -> None:
    """Store each bool argument of `block` by a kernel, for all ops that would pass on its bytes."""
    arguments = [argument for argument in block.arguments if type_of(argument).dtype.is_bool]
    if not arguments:
        return
    plain: dict[ir.Value, ir.Value] = {}
    for op in block.operations:
        if op.operation.name not in _AS_IT_IS:
            continue
        for place, operand in enumerate(op.operation.operands):
            if operand in arguments:
                if operand not in plain:
                    plain[operand] = _stored(block, operand)
                op.operation.operands[place] = plain[operand]


def _stored(block: ir.Block, argument: ir.Value) -> ir.Value:
    with ir.InsertionPoint.at_block_begin(block), argument.location:
        return ContiguousOp.make([argument], type_of(argument)).results[0]
