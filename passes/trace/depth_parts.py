"""Divide the reduction loops of a contraction into parts, if its operands are read linearly only then."""

from __future__ import annotations

from collections.abc import Callable

from ..loops.accesses import loads
from ..loops.contraction import match_contraction
from ..loops.domain import Domain
from ..loops.index_space import IndexSpace
from ..loops.parts import in_parts
from ..loops.scalar_dag import Interner, Node


def domain_of_contraction(
    domain: Domain,
    combine: str | None,
    element: Node,
    nodes: Interner,
    space: IndexSpace,
    trace: Callable[[Domain], Node],
) -> Domain | None:
    """The domain over which a root is a contraction; None if it is none. `trace` computes its element over a domain.

    If it is one only over parts of its loops, its reduction loops are divided; those of its rows are divided where the
    contraction is recognised again.
    """
    if match_contraction(domain, combine, element, nodes, space) is not None:
        return domain
    read = [at for load in loads((element,), nodes) for at in load.index] if combine == "sum" else []
    parts = in_parts(domain.loops, read, space)
    if parts is None:
        return None
    divided = domain.over(*parts)
    if match_contraction(divided, combine, trace(divided), nodes, space) is None:
        return None
    depth = in_parts(domain.loops, read, space, all_kinds=False)
    return domain if depth is None else domain.over(*depth)
