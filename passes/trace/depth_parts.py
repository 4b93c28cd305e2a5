"""Divide the reduction loops of a contraction into parts, if its operands are read linearly only then."""

from __future__ import annotations

from collections.abc import Callable

from ..loops.accesses import loads
from ..loops.contraction import match_contraction
from ..loops.domain import Domain
from ..loops.index_space import IndexSpace
from ..loops.parts import in_parts
from ..loops.scalar_dag import Interner, Node


def contracted(
    domain: Domain,
    combine: str | None,
    element: Node,
    nodes: Interner,
    space: IndexSpace,
    trace: Callable[[Domain], Node],
) -> tuple[Domain, Node, bool]:
    """The domain and the element of a root, and whether it is a contraction.

    If it is one only over parts of its loops, its reduction loops are divided; those of its rows are divided where the
    contraction is recognised again. `trace` computes the element over a domain.
    """
    if match_contraction(domain, combine, element, nodes, space) is not None:
        return domain, element, True
    read = [at for load in loads((element,), nodes) for at in load.index] if combine == "sum" else []
    parts = in_parts(domain.loops, read, space)
    if parts is None:
        return domain, element, False
    divided = domain.over(*parts)
    if match_contraction(divided, combine, trace(divided), nodes, space) is None:
        return domain, element, False
    depth = in_parts(domain.loops, read, space, all_kinds=False)
    if depth is None:
        return domain, element, True
    divided = domain.over(*depth)
    return divided, trace(divided), True
