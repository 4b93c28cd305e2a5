"""The named operations of `linalg` that this compiler writes.

The bindings have functions for all of them, which `dialect.mlir` leaves out.
"""

from __future__ import annotations

from .mlir import ir, linalg


def fill(value: ir.Value, target: ir.Value) -> ir.Value:
    """The tensor `target` with `value`, a scalar of its element type, everywhere."""
    filled = linalg.FillOp([target.type], [value], [target])
    linalg.fill_builtin_region(filled.operation)
    return filled.results[0]


def copy(source: ir.Value, target: ir.Value) -> None:
    """Copy one memref into another of the same shape and element type."""
    copied = linalg.CopyOp([], [source], [target])
    linalg.fill_builtin_region(copied.operation)
