"""Choose cats to store because they are free: each part is stored by a kernel anyway, at its place in the whole.

Otherwise a cat is inlined, and its readers select a part for every element.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorkiln import expr
from tensorkiln.expr import Dim

from ..values import Function, Value, values_behind

ALIGNMENT = 16
"""Required alignment in bytes of a part: kernels may load and store as many at once."""
MAX_AHEAD = 16
"""Most kernels, or stored values, after the first part: a later part holds memory long before it is used."""
_RESHAPING = frozenset({"reshape", "contiguous", "contiguous_backward", "detach", "fuse", "noop", "kernel"})


def store_what_joins_in_place(function: Function, live: Sequence[Value], stored: set[Value]) -> None:
    """Add to `stored` the cats along memory whose parts are stored, or can be stored by the kernel of a reduction."""
    results = frozenset(function.results)
    placed: set[Value] = set()
    begun: dict[Value, int] = {}
    count = 0
    for value in live:
        count += value in stored
        begun[value] = count
        if value.kind != "cat":
            continue
        parts = _parts(value, stored, results)
        if parts is None or len(set(parts)) < len(parts) or not placed.isdisjoint(parts):
            continue
        if value in results or not takes_memory_early([(begun[part], part.size_bytes) for part in parts]):
            begun[value] = min((begun[part] for part in parts), default=count)
            placed.update(parts)
            stored.update((value, *parts))


def is_aligned(offset: Dim) -> bool:
    """Whether a part at `offset` bytes can be stored there by a kernel."""
    return expr.split_multiple(offset, ALIGNMENT)[1] == 0


def takes_memory_early(parts: Sequence[tuple[int, Dim]]) -> bool:
    """Whether too much of the whole is computed long after its first part, and would hold memory early.

    `parts` has the number of the first kernel and the bytes of each part. Late parts may be less than half of the
    bytes: features that grow by a few channels at a time stay in one place.
    """
    first = min((begun for begun, _ in parts), default=0)
    late = expr.add(0, *(size for begun, size in parts if begun - first > MAX_AHEAD))
    rest = expr.add(0, *(size for begun, size in parts if begun - first <= MAX_AHEAD))
    return late != 0 and not (isinstance(late, int) and isinstance(rest, int) and late < rest)


def _parts(cat: Value, stored: set[Value], results: frozenset[Value]) -> list[Value] | None:
    """The value to store in the place of each part, or None if a part cannot be stored there."""
    if expr.product(cat.shape[: cat.int("axis") % len(cat.shape)]) != 1:
        return None
    found: list[Value] = []
    offset: Dim = 0
    for part in cat.operands:
        size = part.size_bytes
        if size == 0:
            continue
        base = _behind(part)
        is_ours = base.kind != "argument" and base.kind != "vconst" and base not in results
        if not is_ours or not is_aligned(offset) or base.size_bytes != size:
            return None
        # Values that `base` is computed from without another stored value in between.
        behind = values_behind(base, lambda operand: operand.kind == "reduce_axis" or operand in stored)
        if base not in stored and not any(
            value.kind == "reduce_axis" and value.long_dims == base.long_dims for value in behind
        ):
            return None
        found.append(base)
        offset = expr.add(offset, size)
    return found


def _behind(value: Value) -> Value:
    while value.kind in _RESHAPING and len(value.operands) == 1:
        (value,) = value.operands
    return value
