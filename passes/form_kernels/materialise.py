"""Decide which values live in memory; all others are recomputed where they are read.

A value is stored when the graph returns it, when an op cannot be traced through (a reduction, a scatter, a callback),
or when recomputing it would cost more than a store and the loads: because several kernels read it, or because an
expansion or a window would compute it many times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from tensorkiln import expr
from tensorkiln.dtypes import DType

from ..schedule.contraction import is_exact_widening
from ..to_linalg.index_space import IndexSpace
from ..values import Function, Value
from .joining import store_what_joins_in_place

OPAQUE = frozenset({"scatter", "custom", "copy"})
"""Ops that read and write whole buffers: their operands and results are stored."""

MOVEMENT = frozenset(
    {"reshape", "permute", "expand", "pad", "shrink", "flip", "view", "valid", "cat", "vectorize", "gep", "buffer_view"}
    | {"contiguous_backward", "detach", "fuse", "unroll", "noop", "kernel"}
)
LITERAL = frozenset({"const_scalar", "define_var", "bind", "unique", "device", "buffer"})

MAX_DEPTH = 48
"""Ops on a path through one kernel: bounds the depth of tracing, and the code that one element takes."""
MAX_SIZE = 256
"""Ops on all paths through a kernel; one read twice counts twice, as reads at different indices share nothing."""
_HOISTED_COST = 64
_SHARED_COST = 6
_REPEATED_COST = 4

_BINOP_COST = {"div": 6, "idiv": 12, "fdiv": 6, "mod": 16, "pow": 60}
_UNARY_COST = {"exp2": 14, "log2": 20, "sin": 24, "sqrt": 6, "recip": 6}


def is_table(value: Value) -> bool:
    """Whether the value is a constant that is kept in a buffer of its own."""
    return value.kind == "vconst" and value.fields["values"].size > 1


def lives_in_memory(value: Value) -> bool:
    """Whether the value is in a buffer before any kernel runs."""
    return value.kind == "argument" or is_table(value)


def live_values(function: Function) -> list[Value]:
    """The values that the results depend on, in order."""
    needed: set[Value] = set()
    stack = list(function.results)
    while stack:
        value = stack.pop()
        if value not in needed:
            needed.add(value)
            stack.extend(value.operands)
    return [value for value in function.values if value in needed]


def _own_cost(value: Value) -> int:
    if value.kind == "binop":
        return _BINOP_COST.get(value.text("op"), 1)
    if value.kind == "unary":
        return _UNARY_COST.get(value.text("op"), 1)
    if value.kind == "threefry":
        return 80
    return 0 if value.kind in MOVEMENT or value.kind in LITERAL else 2 if value.kind in ("gather", "index") else 1


class _Costs:
    """Operations, ops on the longest path, and ops on all paths behind each value, down to what is stored."""

    def __init__(self, stored: set[Value]) -> None:
        self.stored = stored
        self.work: dict[Value, int] = defaultdict(int)
        self.depth: dict[Value, int] = defaultdict(int)
        self.size: dict[Value, int] = defaultdict(int)

    def add(self, value: Value) -> None:
        inlined = [operand for operand in dict.fromkeys(value.operands) if operand not in self.stored]
        self.work[value] = _own_cost(value) + sum(self.work[operand] for operand in inlined)
        self.depth[value] = 1 + max((self.depth[operand] for operand in inlined), default=0)
        self.size[value] = 1 + sum(self.size[operand] for operand in inlined)


def materialised(function: Function, live: Sequence[Value]) -> set[Value]:
    """The values of `function` that kernels store."""
    users: dict[Value, list[Value]] = defaultdict(list)
    for value in live:
        for operand in value.operands:
            users[operand].append(value)
    stored = {value for value in live if _must_be_stored(value)} | {
        result for result in function.results if not lives_in_memory(result)
    }
    for value in live:
        if value.kind in OPAQUE:
            stored.update(operand for operand in value.operands if not lives_in_memory(operand))
    space = IndexSpace(function.symbols)
    costs = _Costs(stored)
    for value in live:
        for repeated in _repeated(value, users, costs, space):
            stored.add(repeated)
        costs.add(value)
        if costs.size[value] > MAX_SIZE * 2:
            stored.update(operand for operand in value.operands if costs.size[operand] > 1)
            costs.add(value)
        if costs.depth[value] > MAX_DEPTH or costs.size[value] > MAX_SIZE:
            stored.add(value)
    _store_what_many_kernels_compute(live, users, stored, costs)
    store_what_joins_in_place(function, live, stored)
    return {value for value in stored if not lives_in_memory(value) and value.dtype is not DType.UNIT}


def _must_be_stored(value: Value) -> bool:
    return value.kind in OPAQUE or value.kind in ("reduce_axis", "contiguous")


def _repeated(value: Value, users: Mapping[Value, list[Value]], costs: _Costs, space: IndexSpace) -> list[Value]:
    """What must be stored because `value`, an expansion or a window, would compute it over and over."""
    if value.kind not in ("expand", "view", "gather", "index"):
        return []
    source = value.operands[0]
    if source in costs.stored or costs.work[source] == 0 or source.shape == () or expr.product(source.shape) == 1:
        return []
    if not _grows(source, value, space):
        return []
    computed = _computed(source, costs.stored)
    if _feeds_contraction(value, users) and not (_is_conversion(computed) and costs.work[computed] == 1):
        return [computed]
    limit = _HOISTED_COST if _is_hoistable(value) else _REPEATED_COST
    return [computed] if costs.work[source] > limit else []


def _grows(source: Value, value: Value, space: IndexSpace) -> bool:
    """Whether the result has more elements than the source, for some value of the symbols."""
    return not space.is_nonnegative(expr.sub(expr.product(source.shape), expr.product(value.shape)))


def _computed(value: Value, stored: set[Value]) -> Value:
    """The value behind single-operand movement: as many elements or fewer, and the same work."""
    while value.kind in ("reshape", "permute", "expand", "flip", "detach", "fuse") and value not in stored:
        value = value.operands[0]
    return value


def _is_conversion(value: Value) -> bool:
    """Whether a contraction computes the value as it reads what is behind it."""
    return value.kind == "cast" and is_exact_widening(value.operands[0].dtype, value.dtype)


def _is_hoistable(value: Value) -> bool:
    """Whether only trailing dimensions are expanded: then the work is invariant in the inner loops."""
    if value.kind != "expand":
        return False
    source = value.operands[0].shape
    expanded = [have == 1 and want != 1 for have, want in zip(source, value.shape, strict=True)]
    first = expanded.index(True) if True in expanded else len(expanded)
    return all(have == 1 for have in source[first:])


def _feeds_contraction(value: Value, users: Mapping[Value, list[Value]]) -> bool:
    """Whether the value is a factor of a product that is summed."""
    frontier = [value]
    for _ in range(4):
        frontier = [user for item in frontier for user in users[item]]
        for user in frontier:
            if user.kind == "binop" and user.text("op") == "mul" and any(u.kind == "reduce_axis" for u in users[user]):
                return True
        frontier = [user for user in frontier if user.kind in MOVEMENT]
    return False


def _store_what_many_kernels_compute(
    live: Sequence[Value], users: Mapping[Value, list[Value]], stored: set[Value], costs: _Costs
) -> None:
    readers: dict[Value, frozenset[Value]] = {}
    for value in reversed(live):
        found: set[Value] = set()
        for user in users[value]:
            found |= {user} if user in stored else readers[user]
        readers[value] = frozenset(found)
        if len(found) > 1 and value not in stored and costs.work[value] >= _SHARED_COST and value.kind not in MOVEMENT:
            stored.add(value)
