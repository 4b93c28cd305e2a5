"""Det: by minors for small matrices, by elimination for larger ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...build import Tensor, absolute, arange, argmax, equal, gather, where
from ...build.conversion import widened
from .node import Node
from .value import Value

MAX_MINORS = 4
"""The most rows for an expansion by minors, which has a factorial number of terms."""
MAX_DETERMINANT = 64
"""The most rows; each adds nodes to the graph."""


def det(node: Node) -> Value:
    """The determinant over the last two axes, which must be square."""
    x = node.tensor(0)
    size = x.shape[-1]
    if not isinstance(size, int) or not 0 < size <= MAX_DETERMINANT:
        node.fail(f"the determinant of {size} rows is not computed, only up to {MAX_DETERMINANT}")
    if x.rank < 2 or x.shape[-2] != size:
        node.invalid(f"a tensor of the shape {x.shape} has no square matrices")
    if size <= MAX_MINORS:
        return _minor(x, 0, list(range(size)))
    return _eliminated(widened(x), size).cast(x.dtype)


def _minor(x: Tensor, row: int, columns: Sequence[int]) -> Tensor:
    if len(columns) == 1:
        return x[..., row, columns[0]]
    total, *others = (
        x[..., row, column] * _minor(x, row + 1, [other for other in columns if other != column]) for column in columns
    )
    for place, part in enumerate(others):
        total = total + part if place % 2 else total - part
    return total


def _eliminated(x: Tensor, size: int) -> Tensor:
    """Gaussian elimination with partial pivoting: the product of the pivots, negated for every row exchange."""
    left, found = x, None
    for rows in range(size, 1, -1):
        chosen = argmax(absolute(left[..., 0]), -1, keepdims=True)
        places = chosen.unsqueeze([-1]).expand([*left.shape[:-2], 1, rows])
        pivot_row, first_row = gather(left, places, left.rank - 2), left[..., :1, :]
        pivot = pivot_row[..., 0, 0]
        signed = where(equal(chosen.squeeze([-1]), 0), pivot, -pivot)
        found = signed if found is None else found * signed
        is_chosen = equal(arange(x.builder, rows), chosen).unsqueeze([-1])
        others = where(is_chosen, first_row, left)[..., 1:, :]
        # A zero column makes the determinant 0: avoid dividing by the zero pivot.
        divisor = where(equal(pivot, 0.0), 1.0, pivot).unsqueeze([-2, -1])
        left = (others - others[..., :1] / divisor * pivot_row)[..., 1:]
    last = left[..., 0, 0]
    return last if found is None else found * last


OPERATORS: dict[str, Callable[[Node], Value]] = {"Det": det}
