"""Count operations by name, and find the nodes that most of them come from."""

from __future__ import annotations

from collections import Counter
from typing import Final

from dialect.locations import node_pointers
from dialect.mlir import ir

_SAMPLED: Final = 5000
_NAMED: Final = 3


def census(root: ir.Operation) -> Counter[str]:
    """Operations by name, including `root`; half a microsecond each."""
    counts: dict[str, int] = {}

    def visit(operation: ir.Operation) -> ir.WalkResult:
        name = operation.name
        counts[name] = counts.get(name, 0) + 1
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return Counter(counts)


def count_nested(module: ir.Module) -> int:
    """The number of operations of a module, including itself; a third of a microsecond each."""
    total = 0

    def visit(_: ir.Operation) -> ir.WalkResult:
        nonlocal total
        total += 1
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return total


def count_flat(module: ir.Module) -> int:
    """The same if only top-level operations have regions; a twentieth of a microsecond each."""
    tops = list(module.body.operations)
    blocks = (block for top in tops for region in top.operation.regions for block in region.blocks)
    return 1 + len(tops) + sum(len(block.operations) for block in blocks)


def heaviest_nodes(module: ir.Module) -> tuple[str, ...]:
    """The nodes, as JSON Pointers, that most operations of the largest function come from; empty if unknown."""
    sizes = [(census(function.operation).total(), function.operation) for function in module.body.operations]
    if not sizes:
        return ()
    total, largest = max(sizes, key=lambda entry: entry[0])
    nodes: Counter[str] = Counter()
    seen = 0

    def visit(operation: ir.Operation) -> ir.WalkResult:
        nonlocal seen
        # Reading a location takes ten times as long as counting.
        if seen % max(1, total // _SAMPLED) == 0:
            nodes.update(node_pointers(operation.location))
        seen += 1
        return ir.WalkResult.ADVANCE

    largest.walk(visit)
    return tuple(pointer for pointer, _ in nodes.most_common(_NAMED))
