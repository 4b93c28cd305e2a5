"""Decide which values live in memory; all others are recomputed where they are read.

A value is stored if the graph returns it, if an op cannot be traced through (a reduction, a scatter, a callback), or if
recomputing it costs more than a store and the loads: because several kernels read it, because an expansion, a window or
a bitcast would compute it many times, or because the code of one element would be too long. A value that depends on
parameters alone is stored too, so that it is not computed at each call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from tensorkiln import expr
from tensorkiln.dtypes import DType

from ..loops.contraction import is_exact_widening
from ..loops.domain import MOST_WINDOW
from ..loops.index_space import IndexSpace
from ..values import Function, Value, users_of
from .costs import MOVEMENT, Costs
from .joining import store_what_joins_in_place
from .prepare import stored_before

OPAQUE = frozenset({"scatter", "custom", "copy", "while", "while_result"})
"""Ops that read and write whole buffers: their operands and results are stored."""

MAX_DEPTH = 48
"""Most ops on a path through one kernel: bounds the depth of tracing, and the code of one element."""
MAX_SIZE = 256
"""Most ops on all paths through a kernel; a value read twice counts twice, since reads at different indices share
nothing."""
MAX_INDEX = 64
"""Most occurrences of the index of one axis in an address: each reshape that merges and splits may double it."""
MANY_PARTS = 8
"""Least parts of a cat for which a load takes less than a choice among them, as of a sequence's steps."""
RELOAD = 6
"""The cost of storing an element and loading it again on a CPU core, in additions."""
_HOISTED_RELOADS = 10
"""Reloads that a value invariant in the inner loops may cost before it is stored."""


def is_table(value: Value) -> bool:
    """Whether the value is a constant in a buffer of its own."""
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
    # A loop writes all values that it carries, read or not.
    return [
        value
        for value in function.values
        if value in needed or (value.kind == "while_result" and value.operands[0] in needed)
    ]


def materialised(
    function: Function,
    live: Sequence[Value],
    prepared: Collection[Value] = (),
    fusion: bool = True,
    reload: int = RELOAD,
) -> set[Value]:
    """The values that kernels store; without `fusion` also all that take no more memory than their operands.

    `prepared` are the values that depend on parameters alone; `reload` is the cost of storing and loading an element.
    """
    users = users_of(live)
    stored = {value for value in live if value.kind in OPAQUE or value.kind in ("reduce_axis", "contiguous")}
    stored.update(result for result in function.results if not lives_in_memory(result))
    stored |= stored_before(live, users, prepared, function.results)
    for value in live:
        if value.kind in OPAQUE:
            stored.update(operand for operand in value.operands if not lives_in_memory(operand))
    space = IndexSpace(function.symbols)
    costs = Costs(stored, function.symbols)
    for value in live:
        for repeated in _repeated(value, users, costs, space, reload):
            stored.add(repeated)
            _recount(users[repeated], users, costs)
        costs.add(value)
        if costs.size[value] > MAX_SIZE * 2 or costs.index_size(value) > MAX_INDEX * 2:
            stored.update(operand for operand in value.operands if costs.size[operand] > 1)
            costs.add(value)
        if costs.depth[value] > MAX_DEPTH or costs.size[value] > MAX_SIZE or costs.index_size(value) > MAX_INDEX:
            stored.add(value)
    _store_what_many_kernels_compute(live, users, stored, costs, reload)
    store_what_joins_in_place(function, live, stored)
    if not fusion:
        in_memory = {value for value in (*function.arguments, *live) if value in stored or lives_in_memory(value)}
        stored |= _values_apart(function, live, in_memory)
    return {value for value in stored if not lives_in_memory(value) and value.dtype is not DType.UNIT}


def _values_apart(function: Function, live: Sequence[Value], in_memory: set[Value]) -> set[Value]:
    """What to store without fusion: the values that are no larger than all values in memory that they are computed
    from, taken together.

    `in_memory` are the values that are in memory anyway. The others are computed where they are read: an expanded
    operand; the product of two of them that a sum reads, which a matrix product would store as rows times columns times
    depth; and values of constants alone.
    """
    space = IndexSpace(function.symbols)
    stored: set[Value] = set()
    sources: dict[Value, frozenset[Value]] = {}
    for value in (*function.arguments, *live):
        behind = frozenset[Value]().union(*(sources[operand] for operand in value.operands))
        room = expr.add(0, *(expr.product(source.shape) for source in behind))
        if behind and space.is_nonnegative(expr.sub(room, expr.product(value.shape))):
            stored.add(value)
        sources[value] = frozenset({value}) if value in stored or value in in_memory else behind
    return stored


def _recount(values: Sequence[Value], users: Mapping[Value, list[Value]], costs: Costs) -> None:
    """Count again the movement ops whose operands are now stored."""
    for value in values:
        if value.kind in MOVEMENT and value in costs.size:
            costs.add(value)
            _recount(users[value], users, costs)


def _repeated(
    value: Value, users: Mapping[Value, list[Value]], costs: Costs, space: IndexSpace, reload: int
) -> list[Value]:
    """The values to store because `value`, an expansion, a window or a bitcast, would recompute its operand."""
    if value.kind not in ("expand", "view", "gather", "index", "bitcast"):
        return []
    source = value.operands[0]
    if source in costs.stored or source.shape == () or expr.product(source.shape) == 1:
        return []
    chosen = _chosen(source, costs.stored)
    if costs.work[source] == 0 and chosen is None:
        return _interleaved(value, users, costs)
    if space.is_nonnegative(expr.sub(expr.product(source.shape), expr.product(value.shape))):
        # It has no more elements than its operand, whatever the symbols are.
        return []
    sums = _sums_of_products(value, users)
    if chosen is not None and costs.work[chosen] == 0:
        # A contraction reads each factor at one place: it cannot choose one for each element.
        return [chosen] if sums else []
    computed = _computed(source, costs.stored)
    if sums and _is_padded_around_lines(computed) and all(_is_window(value, each) for each in sums):
        # Each read of a small window asks once for a line whether it is inside: less than storing the padded image.
        computed = _computed(computed.operands[0], costs.stored)
        return [] if computed in costs.stored or lives_in_memory(computed) else [computed]
    if sums and not (_is_conversion(computed) and costs.work[computed] == 1):
        return [computed]
    # The stored value is loaded as often as it would be computed, and stored once.
    limit = _HOISTED_RELOADS * reload if _is_hoistable(value) else 2 * reload // 3
    return [computed] if costs.work[source] > limit else []


def _interleaved(value: Value, users: Mapping[Value, list[Value]], costs: Costs) -> list[Value]:
    """The image to store because windows of a convolution would read its lines in pieces, each from another place.

    So does one whose channels have become pixels: an address has the quotient and the remainder of a place in a line,
    and vectors do not run along it.
    """
    source = value.operands[0]
    if value.kind != "view" or costs.index.get(source, (1,))[-1] < 2 or not _sums_of_products(value, users):
        return []
    while source.kind in ("pad", "shrink") and source not in costs.stored:
        source = source.operands[0]
    return [] if source in costs.stored or lives_in_memory(source) else [source]


def _computed(value: Value, stored: set[Value]) -> Value:
    """The value behind single-operand movement: at most as many elements, and the same work."""
    while value.kind in ("reshape", "permute", "expand", "flip", "detach", "fuse") and value not in stored:
        value = value.operands[0]
    return value


def _chosen(value: Value, stored: set[Value]) -> Value | None:
    """The cat behind movement, if there is one that is not stored: the elements at the edges of an image, repeated."""
    while value.kind in MOVEMENT and value not in stored:
        if value.kind == "cat" and len(value.operands) > 1:
            return value
        if not value.operands:
            return None
        value = value.operands[0]
    return None


def _is_conversion(value: Value) -> bool:
    """Whether a contraction can do the conversion itself when it reads the operand."""
    return value.kind == "cast" and is_exact_widening(value.operands[0].dtype, value.dtype)


def _is_hoistable(value: Value) -> bool:
    """Whether only trailing dimensions are expanded: then the work is invariant in the inner loops."""
    if value.kind != "expand":
        return False
    source = value.operands[0].shape
    expanded = [have == 1 and want != 1 for have, want in zip(source, value.shape, strict=True)]
    first = expanded.index(True) if True in expanded else len(expanded)
    return all(have == 1 for have in source[first:])


def _sums_of_products(value: Value, users: Mapping[Value, list[Value]]) -> list[Value]:
    """The nearest sums of products that the value is a factor of, behind movement ops and conversions."""
    frontier = [value]
    while frontier:
        frontier = [user for item in frontier for user in users[item]]
        products = [user for user in frontier if user.kind == "binop" and user.text("op") == "mul"]
        if found := [user for each in products for user in users[each] if user.kind == "reduce_axis"]:
            return found
        frontier = [user for user in frontier if user.kind in MOVEMENT or _is_conversion(user)]
    return []


def _is_padded_around_lines(value: Value) -> bool:
    """Whether the value is padded, but not along its last dimension, which vectors run along."""
    return value.kind == "pad" and value.dim_pairs("pad_width")[-1] == (0, 0)


def _is_window(value: Value, total: Value) -> bool:
    """Whether `total` sums small windows of the value, each once."""
    (products,) = total.operands
    points = expr.product([products.shape[axis] for axis in total.ints("axes")])
    is_once = expr.product(products.shape) == expr.product(value.shape)
    return is_once and isinstance(points, int) and points <= MOST_WINDOW


def _store_what_many_kernels_compute(
    live: Sequence[Value], users: Mapping[Value, list[Value]], stored: set[Value], costs: Costs, reload: int
) -> None:
    """Store values that several kernels would each recompute from all their operands, if a load is cheaper."""
    # Of the kernels that compute a value, two are enough to know that there are several.
    readers: dict[Value, frozenset[Value]] = {}
    for value in reversed(live):
        found: set[Value] = set()
        for user in users[value]:
            found |= {user} if user in stored else readers[user]
        readers[value] = frozenset(islice(found, 2))
        is_long = value.kind == "cat" and len(value.operands) >= MANY_PARTS
        if len(found) > 1 and value not in stored and (is_long or value.kind not in MOVEMENT):
            read = max(0, len(costs.leaves.get(value, ())) - 1)
            if is_long or costs.work[value] + read * reload // 2 >= reload:
                stored.add(value)
