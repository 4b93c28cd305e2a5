"""Cats that cost nothing when they are stored, because each part is stored by a kernel anyway: in its place.

Without this a cat is looked through, and a reader of it chooses between its parts at every element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorkiln import expr
from tensorkiln.expr import Dim

from ..loops.index_space import split_multiple
from ..values import Function, Value, values_behind

ALIGNMENT = 16
"""Bytes that the place of a part must be a multiple of: kernels may load and store as many at once."""
MAX_AHEAD = 16
"""Kernels, or values stored, after that of the first part: what comes later holds memory long before it is used."""
_RESHAPING = frozenset({"reshape", "contiguous", "contiguous_backward", "detach", "fuse", "noop", "kernel"})


def store_what_joins_in_place(function: Function, live: Sequence[Value], stored: set[Value]) -> None:
    """Add to `stored` the cats along memory of values that are stored, or that the kernel of a reduction can store."""
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


def takes_memory_early(parts: Sequence[tuple[int, Dim]]) -> bool:
    """Whether so much of a whole is computed long after its first part that it should not have its memory from then on.

    `parts` are the number of the kernel that begins each, and its bytes. What is late may be less than half: features
    that grow by a few channels at a time stay in one place.
    """
    first = min((begun for begun, _ in parts), default=0)
    late = expr.add(0, *(size for begun, size in parts if begun - first > MAX_AHEAD))
    rest = expr.add(0, *(size for begun, size in parts if begun - first <= MAX_AHEAD))
    return late != 0 and not (isinstance(late, int) and isinstance(rest, int) and late < rest)


def _parts(cat: Value, stored: set[Value], results: frozenset[Value]) -> list[Value] | None:
    """What to store in the place of each part, or None where one cannot be."""
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
        if not is_ours or split_multiple(offset, ALIGNMENT)[1] != 0 or base.size_bytes != size:
            return None
        if base not in stored and not any(
            base.long_dims == other.long_dims for other in _reductions_behind(base, stored)
        ):
            return None
        found.append(base)
        offset = expr.add(offset, size)
    return found


def _behind(value: Value) -> Value:
    while value.kind in _RESHAPING and len(value.operands) == 1:
        (value,) = value.operands
    return value


def _reductions_behind(value: Value, stored: set[Value]) -> Iterator[Value]:
    """The reductions that `value` is computed from without any other value being stored in between."""
    for found in values_behind(value, lambda operand: operand.kind == "reduce_axis" or operand in stored):
        if found.kind == "reduce_axis":
            yield found
