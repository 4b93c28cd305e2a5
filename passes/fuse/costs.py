"""The cost of computing an element of a value from stored values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tensorkiln import expr

from ..scalar.costs import additions
from ..values import Value
from .reads import Read, Reads

MOVEMENT = frozenset(
    {"reshape", "permute", "expand", "pad", "shrink", "flip", "view", "valid", "cat", "vectorize", "gep", "buffer_view"}
    | {"contiguous_backward", "detach", "fuse", "unroll", "noop", "kernel"}
)
LITERAL = frozenset({"const_scalar", "vconst", "define_var", "bind", "unique", "device", "buffer"})


def _own_cost(value: Value) -> int:
    if value.kind in MOVEMENT or value.kind in LITERAL:
        return 0
    if value.kind in ("gather", "index"):
        return 2
    is_float = bool(value.operands) and value.operands[0].dtype.is_float
    return additions(value.kind, str(value.fields.get("op")), is_float=is_float)


class Costs:
    """Costs of each value, counted back to stored values: `work` in operations, `depth`, `size`, `leaves` and `index`.

    `depth` is the ops on the longest path, `size` the ops on all paths, and `leaves` the stored values of the value's
    own size that are read. An operand counts once for each place at which it is read. `index` has one entry per axis of
    a value: the most occurrences of that axis's index in an address behind the value. A reshape that splits what
    another one merged doubles it, since the quotient and the remainder both contain the whole index.
    """

    def __init__(self, stored: set[Value], symbols: Mapping[str, tuple[int, int]]) -> None:
        self.stored = stored
        self.work: dict[Value, int] = defaultdict(int)
        self.depth: dict[Value, int] = defaultdict(int)
        self.size: dict[Value, int] = defaultdict(int)
        self.leaves: dict[Value, frozenset[Value]] = {}
        self.index: dict[Value, tuple[int, ...]] = {}
        self._reads = Reads(symbols)

    def add(self, value: Value) -> None:
        """Count `value`; its operands must have been counted, except arguments."""
        reads = self._reads.of(value)
        inlined = [read.operand for read in reads if read.operand not in self.stored]
        self.work[value] = _own_cost(value) + sum(self.work[operand] for operand in inlined)
        self.depth[value] = 1 + max((self.depth[operand] for operand in inlined), default=0)
        self.size[value] = 1 + sum(self.size[operand] for operand in inlined)
        size = expr.product(value.shape)
        own = (operand for operand in value.operands if operand not in inlined and expr.product(operand.shape) == size)
        self.leaves[value] = frozenset(own).union(*(self.leaves.get(operand, ()) for operand in inlined))
        index = [1] * len(value.shape)
        for read in reads:
            for axis, count in self._counts(read).items():
                index[axis] = max(index[axis], count)
        self.index[value] = tuple(index)

    def index_size(self, value: Value) -> int:
        """The most occurrences of the index of any one axis in an address behind the value."""
        return max(self.index[value], default=1)

    def _counts(self, read: Read) -> Mapping[int, int]:
        """The most occurrences of the index of each axis of the reader in an address behind one read."""
        operand = read.operand
        is_inlined = operand in self.index and operand not in self.stored
        behind = self.index[operand] if is_inlined else (1,) * len(operand.shape)
        counts: dict[int, int] = defaultdict(int)
        for axes, count in zip(read.axes, behind, strict=True):
            for axis in axes:
                counts[axis] += count
        return counts
