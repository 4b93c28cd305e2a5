"""A kernel function as a sequence of stages over shared rows: what every strategy starts from.

The roots of the function, in order, are the values that it stores. Each belongs to a stage: a map computes an element
per point of its loops, a reduction combines elements along its reduction loops. The leading loops of all stages agree:
they are the rows. Within one row a stage may read anything that an earlier stage has stored for that row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorkiln import expr
from tensorkiln.errors import DiagnosticError
from tensorkiln.expr import Dim

from ..to_linalg.index_space import IndexSpace
from ..to_linalg.scalar_dag import Interner, Load, Node, walk
from ..to_linalg.tracer import Tracer
from ..to_linalg.traces import TRACES
from ..values import Function, Value
from .domain import Domain, Loop, domain_of, traced_value


@dataclass(frozen=True, slots=True)
class Store:
    """The element that a stage computes for `root`, kept at the stage's address in the kernel's operand `operand`."""

    root: Value
    operand: int
    element: Node


@dataclass(frozen=True, slots=True)
class Stage:
    """Loops and what they compute: one reduction of kind `combine`, or the stores of a map (`combine` is None)."""

    domain: Domain
    combine: str | None
    stores: tuple[Store, ...]

    @property
    def roots(self) -> tuple[Value, ...]:
        return tuple(store.root for store in self.stores)

    @property
    def elements(self) -> tuple[Node, ...]:
        return tuple(store.element for store in self.stores)


@dataclass(frozen=True, slots=True)
class KernelBody:
    """The stages of a kernel over its rows.

    Operands are numbered: the function's arguments, its distinct results, then the roots that never leave the kernel.
    """

    function: Function
    space: IndexSpace
    nodes: Interner
    rows: tuple[Loop, ...]
    stages: tuple[Stage, ...]
    operands: tuple[Value, ...]
    local_from: int

    def is_local(self, operand: int) -> bool:
        """Whether the operand never leaves the kernel."""
        return operand >= self.local_from


def kernel_body(function: Function, rows: int) -> KernelBody:
    """Trace the roots of a kernel function whose first `rows` loops are shared by all of them."""
    results = tuple(dict.fromkeys(function.results))
    roots = tuple(value for value in function.values if value.is_root)
    local = tuple(root for root in roots if root not in results)
    operands = (*function.arguments, *results, *local)
    space, nodes = IndexSpace(function.symbols), Interner()
    numbers = {value: number for number, value in enumerate(operands)}
    row_loops, stages = _stages(roots, rows, space, nodes, numbers)
    return KernelBody(function, space, nodes, row_loops, stages, operands, len(operands) - len(local))


def trace_stage(
    domain: Domain, roots: Sequence[Value], space: IndexSpace, nodes: Interner, numbers: dict[Value, int]
) -> Stage:
    """The stage that computes `roots` over `domain`; roots of one map take each other's elements from registers."""
    others = {value: number for value, number in numbers.items() if value not in roots}
    tracer = Tracer(space, others, TRACES, nodes)
    combine = roots[0].text("reduce_op_kind") if roots[0].kind == "reduce_axis" else None
    stores: list[Store] = []
    for root in roots:
        value = traced_value(root)
        index = domain.index(value.shape)
        element = tracer.element(value, index) if combine else tracer.define(value, index)
        stores.append(Store(root, numbers[root], element))
    return Stage(domain, combine, tuple(stores))


def _stages(
    roots: Sequence[Value], rows: int, space: IndexSpace, nodes: Interner, numbers: dict[Value, int]
) -> tuple[tuple[Loop, ...], tuple[Stage, ...]]:
    if roots[0].kind == "scatter":
        # Where it stores is data: there is nothing to trace.
        return (), ()
    row_loops = _row_loops(roots[0], rows, space)
    stages: list[Stage] = []
    for root in roots:
        domain = _domain(root, row_loops, space, f"l{len(stages)}_")
        if stages and _reads_only_here(root, stages[-1], space, nodes, numbers):
            last = stages[-1]
            stages[-1] = trace_stage(last.domain, (*last.roots, root), space, nodes, numbers)
        else:
            stages.append(trace_stage(domain, (root,), space, nodes, numbers))
    return row_loops, tuple(stages)


def _row_loops(root: Value, rows: int, space: IndexSpace) -> tuple[Loop, ...]:
    own = domain_of(root, space, "r")
    loops = tuple(Loop(f"r{number}", loop.extent) for number, loop in enumerate(own.parallel[:rows]))
    for loop in loops:
        space.add(loop.name, loop.extent)
    return loops


def _domain(root: Value, rows: Sequence[Loop], space: IndexSpace, prefix: str) -> Domain:
    """The loops of `root` with its leading parallel ones renamed to the kernel's rows and put first."""
    own = domain_of(root, space, prefix)
    leading = own.parallel[: len(rows)]
    if [loop.extent for loop in leading] != [loop.extent for loop in rows]:
        raise DiagnosticError(
            f"{root.kind} does not have the rows of its kernel", pointers=[root.pointer], details={"stage": "schedule"}
        )
    names: dict[str, Dim] = {old.name: expr.symbol(row.name) for old, row in zip(leading, rows, strict=True)}
    return own.over((*rows, *(loop for loop in own.loops if loop.name not in names)), names)


def _reads_only_here(root: Value, stage: Stage, space: IndexSpace, nodes: Interner, numbers: dict[Value, int]) -> bool:
    """Whether `root` walks the loops of the map `stage` and reads of its results only the element at hand."""
    extents = [extent for extent in root.shape if extent != 1]
    if root.kind == "reduce_axis" or stage.combine is not None:
        return False
    if extents != [extent for extent in stage.roots[0].shape if extent != 1]:
        return False
    made_here = {store.operand for store in stage.stores}
    probe = Tracer(space, numbers, TRACES, nodes).define(root, stage.domain.index(root.shape))
    loads = (node for node in walk((probe,), nodes) if isinstance(node, Load))
    return all(load.operand not in made_here or load.address == stage.domain.address for load in loads)
