"""Transpose a square of vectors in registers."""

from __future__ import annotations

from collections.abc import Sequence

from dialect.mlir import ir, vector


def transposed(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """The columns of a square of vectors, a power of two, by swapping ever larger off-diagonal squares: J. O. Eklundh,
    "A Fast Computer Method for Matrix Transposing", IEEE Transactions on Computers C-21 (1972).
    """
    lanes, found = len(rows), list(rows)
    size = 1
    while size < lanes:
        upper = [lane if not lane & size else lanes + lane - size for lane in range(lanes)]
        lower = [lane + size if not lane & size else lanes + lane for lane in range(lanes)]
        for number in range(lanes):
            if not number & size:
                pair = found[number], found[number + size]
                found[number] = vector.ShuffleOp(*pair, upper).result
                found[number + size] = vector.ShuffleOp(*pair, lower).result
        size *= 2
    return found
