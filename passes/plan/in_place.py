"""Decide which operand a kernel may overwrite with a result, from where and when it reads the operand.

A result is stored by a map stage, each element at one point. It may take the place of an operand if no element of the
operand is read after it has been overwritten: by the same point, by another point of its row, or by another row. Rows
may run in any order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import Enum

from ..loops.accesses import loads
from ..loops.body import KernelBody, Stage, Store, inner_loops
from ..loops.domain import extent_of
from ..loops.index_space import linear_form
from ..loops.scalar_dag import Load, walk
from ..loops.scatter import init_of, is_scatter, root_of

Reads = Mapping[int, Sequence[Load]]
"""The loads of a stage by operand."""


class Reuse(Enum):
    """The order of loads and stores that the strategies of a target guarantee.

    POINTS: a kernel of one map computes each point once, and loads before it stores. ROWS: the same holds for any
    kernel, and its stages run one after the other for the rows that it takes together; each of these rows may store all
    its results as soon as the first stage has run for all of them.
    """

    POINTS = "points"
    ROWS = "rows"


def reusable(body: KernelBody, reuse: Reuse) -> tuple[tuple[int, int], ...]:
    """`(result, argument)` positions of the body's function such that the result may be computed in place of the
    argument.

    The caller must check that the argument's contents are dead after the kernel.
    """
    arguments = body.function.arguments
    if is_scatter(body):
        root = root_of(body)
        init = init_of(root)
        # Its initial values are read where they are stored. Those of a bool may be any byte, and 1 is stored.
        is_free = init is not None and root.operands.count(init) == 1 and not root.dtype.is_bool
        return ((0, arguments.index(init)),) if is_free else ()
    if reuse is Reuse.POINTS and len(body.stages) > 1:
        return ()
    reads = [_reads(stage, body) for stage in body.stages]
    return tuple(
        (store.operand - len(arguments), position)
        for number, stage in enumerate(body.stages)
        if stage.combine is None
        for store in stage.stores
        if len(arguments) <= store.operand < body.local_from
        for position, argument in enumerate(arguments)
        if store.root.size_bytes == argument.size_bytes and store.root.dtype.itemsize == argument.dtype.itemsize
        if _is_read_in_time(position, store, number, reads, body)
    )


def _reads(stage: Stage, body: KernelBody) -> Reads:
    found: dict[int, list[Load]] = defaultdict(list)
    for load in loads(stage.elements, body.nodes):
        found[load.operand].append(load)
    return found


def _is_read_in_time(operand: int, store: Store, number: int, reads: Sequence[Reads], body: KernelBody) -> bool:
    """Whether all reads of `operand` come before stage `number` overwrites it with `store`."""
    stage = body.stages[number]
    here = reads[number].get(operand, ())
    if any(operand in later for later in reads[number + 1 :]):
        return False
    if any(load.address != stage.domain.address for load in here):
        return False
    if len(stage.stores) > 1 and here:
        # Any other store of the point may load after `store` has run.
        is_loaded_for_it = len(here) == 1 and any(node is here[0] for node in walk((store.element,), body.nodes))
        if not is_loaded_for_it:
            return False
    return all(_is_in_row(load, stage, body) for earlier in reads[:number] for load in earlier.get(operand, ()))


def _is_in_row(load: Load, stage: Stage, body: KernelBody) -> bool:
    """Whether the load reads only elements that `stage` stores in the same row, a contiguous run of elements."""
    names = [loop.name for loop in body.rows]
    read, stored = linear_form(load.address, names), linear_form(stage.domain.address, names)
    if read is None or stored is None or read[1] != stored[1]:
        return False
    return body.space.is_within(read[0], extent_of(inner_loops(body, stage)))
