"""Recognition of regions that one node can replace."""

from __future__ import annotations

from typing import Any


def single_operation(region: Any) -> str | None:
    """The name of the single operation of a region on two scalars, applied to both; None for any other region."""
    (block,) = region.blocks
    operations = [each.operation for each in block.operations]
    if len(operations) != 2 or len(block.arguments) != 2:
        return None
    only, end = operations
    takes_both = len(only.operands) == 2 and set(only.operands) == set(block.arguments)
    is_returned = len(only.results) == 1 and list(end.operands) == list(only.results)
    return str(only.name) if takes_both and is_returned else None


def is_second_argument(region: Any) -> bool:
    """Whether a region on two scalars only returns the second."""
    (block,) = region.blocks
    operations = [each.operation for each in block.operations]
    return len(operations) == 1 and list(operations[0].operands) == [block.arguments[1]]
