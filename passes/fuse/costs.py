"""What computing an element of a value takes, down to what is stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ..values import Value
from .reads import Read, Reads

MOVEMENT = frozenset(
    {"reshape", "permute", "expand", "pad", "shrink", "flip", "view", "valid", "cat", "vectorize", "gep", "buffer_view"}
    | {"contiguous_backward", "detach", "fuse", "unroll", "noop", "kernel"}
)
LITERAL = frozenset({"const_scalar", "define_var", "bind", "unique", "device", "buffer"})

_BINOP_COST = {"div": 6, "idiv": 12, "fdiv": 6, "mod": 16, "pow": 60}
_UNARY_COST = {"exp2": 14, "log2": 20, "sin": 24, "sqrt": 6, "recip": 6}


def _own_cost(value: Value) -> int:
    if value.kind == "binop":
        return _BINOP_COST.get(value.text("op"), 1)
    if value.kind == "unary":
        return _UNARY_COST.get(value.text("op"), 1)
    if value.kind == "threefry":
        return 80
    return 0 if value.kind in MOVEMENT or value.kind in LITERAL else 2 if value.kind in ("gather", "index") else 1


class Costs:
    """Operations, ops on the longest path, and ops on all paths behind each value, down to what is stored.

    An operand counts as often as it is read at different places. `index` has one entry per axis of a value: how often
    the index along that axis stands in an address behind the value, at most. A reshape that splits what another one
    merged doubles it, as the quotient and the remainder both hold the whole index.
    """

    def __init__(self, stored: set[Value], symbols: Mapping[str, tuple[int, int]]) -> None:
        self.stored = stored
        self.work: dict[Value, int] = defaultdict(int)
        self.depth: dict[Value, int] = defaultdict(int)
        self.size: dict[Value, int] = defaultdict(int)
        self.index: dict[Value, tuple[int, ...]] = {}
        self._reads = Reads(symbols)

    def add(self, value: Value) -> None:
        """Count `value`, whose operands have been counted unless they are arguments."""
        reads = self._reads.of(value)
        inlined = [read.operand for read in reads if read.operand not in self.stored]
        self.work[value] = _own_cost(value) + sum(self.work[operand] for operand in inlined)
        self.depth[value] = 1 + max((self.depth[operand] for operand in inlined), default=0)
        self.size[value] = 1 + sum(self.size[operand] for operand in inlined)
        index = [1] * len(value.shape)
        for read in reads:
            for axis, count in self._counts(read).items():
                index[axis] = max(index[axis], count)
        self.index[value] = tuple(index)

    def index_size(self, value: Value) -> int:
        """How often the index along one axis stands in an address behind the value, at most."""
        return max(self.index[value], default=1)

    def _counts(self, read: Read) -> Mapping[int, int]:
        """How often the index along each axis of the reader stands in an address behind one read, at most."""
        operand = read.operand
        is_inlined = operand in self.index and operand not in self.stored
        behind = self.index[operand] if is_inlined else (1,) * len(operand.shape)
        counts: dict[int, int] = defaultdict(int)
        for axes, count in zip(read.axes, behind, strict=True):
            for axis in axes:
                counts[axis] += count
        return counts
