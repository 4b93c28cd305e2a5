"""Trace a kernel function of kiln ops into its body: which roots share a stage, and which are read by a later stage.

The roots of the function, in order, are the values that it stores. Each belongs to a stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tensorkiln import expr
from tensorkiln.errors import DiagnosticError
from tensorkiln.expr import Dim

from ..loops.accesses import loads
from ..loops.body import KernelBody, Stage, Store
from ..loops.domain import Domain, Loop, domain_of
from ..loops.index_space import IndexSpace
from ..loops.scalar_dag import Interner
from ..origins import current
from ..values import Function, Value, values_behind
from .depth_parts import domain_of_contraction
from .tracer import Tracer
from .traces import TRACES


def kernel_body(function: Function, rows: int) -> KernelBody:
    """Trace the roots of a kernel function, which share their first `rows` loops."""
    given = (*function.arguments, *dict.fromkeys(function.results))
    space, nodes = IndexSpace(function.symbols), Interner()
    roots = tuple(value for value in function.values if value.is_root)
    if roots[0].kind == "scatter":
        # Its store addresses are data: there is nothing to trace.
        return KernelBody(function, space, nodes, (), (), given, len(given))
    plan = _Plan(roots, rows, space, nodes, given)
    operands = (*given, *plan.kept())
    numbers = {value: number for number, value in enumerate(operands)}
    stages = tuple(trace_stage(domain, members, space, nodes, numbers) for domain, members in plan.stages)
    return KernelBody(function, space, nodes, plan.rows, stages, operands, len(given))


def trace_stage(
    domain: Domain, roots: Sequence[Value], space: IndexSpace, nodes: Interner, numbers: Mapping[Value, int]
) -> Stage:
    """The stage that computes `roots` over `domain`; roots of one map use each other's elements from registers."""
    others = {value: number for value, number in numbers.items() if value not in roots}
    tracer = Tracer(space, others, TRACES, nodes, records=current() is not None)
    elements = tuple(tracer.computed(root, domain) for root in roots)
    combine = None
    if roots[0].kind == "reduce_axis":
        (root,), (element,), combine = roots, elements, roots[0].text("reduce_op_kind")
        found = domain_of_contraction(domain, combine, element, nodes, space, partial(tracer.computed, root))
        if found is not None and found is not domain:
            domain, elements = found, (tracer.computed(root, found),)
    stores = tuple(
        Store(root, numbers[root], element) for root, element in zip(roots, elements, strict=True) if root in numbers
    )
    return Stage(domain, combine, elements, stores)


class _Plan:
    """Assigns roots to stages, and finds those that a later stage reads."""

    def __init__(
        self, roots: Sequence[Value], rows: int, space: IndexSpace, nodes: Interner, given: Sequence[Value]
    ) -> None:
        self.space, self.nodes = space, nodes
        self.rows = _row_loops(roots[0], rows, space)
        self.stages: list[tuple[Domain, list[Value]]] = []
        self._given = frozenset(given)
        self._values = tuple(dict.fromkeys((*given, *roots)))
        self._tracer = Tracer(space, {value: number for number, value in enumerate(self._values)}, TRACES, nodes)
        self._home: dict[Value, int] = {}
        self._read_later: set[Value] = set()
        for root in roots:
            self._add(root)

    def kept(self) -> list[Value]:
        """The roots that need local memory, in order."""
        return [root for root in self._home if root in self._read_later and root not in self._given]

    def _add(self, root: Value) -> None:
        if not (self.stages and self._may_join(root, *self.stages[-1])):
            self.stages.append((_domain(root, self.rows, self.space, f"l{len(self.stages)}_"), []))
        self.stages[-1][1].append(root)
        here = self._home[root] = len(self.stages) - 1
        # Includes roots of which no element is read in the end: whether a read is out of range depends on the loops,
        # and the stage may be traced again over other loops.
        named = values_behind(root, lambda value: value.is_root)
        self._read_later |= {value for value in named if self._home.get(value, here) < here}

    def _may_join(self, root: Value, domain: Domain, members: Sequence[Value]) -> bool:
        """Whether `root` is a map over the loops of the last stage, and reads only the element of its own point from
        it.
        """
        if "reduce_axis" in (root.kind, members[0].kind) or root.long_dims != members[0].long_dims:
            return False
        found = loads((self._tracer.computed(root, domain),), self.nodes)
        here = [load for load in found if self._home.get(self._values[load.operand]) == len(self.stages) - 1]
        return all(load.address == domain.address for load in here)


def _row_loops(root: Value, rows: int, space: IndexSpace) -> tuple[Loop, ...]:
    own = domain_of(root, space, "r")
    loops = tuple(Loop(f"r{number}", loop.extent) for number, loop in enumerate(own.parallel[:rows]))
    for loop in loops:
        space.add(loop.name, loop.extent)
    return loops


def _domain(root: Value, rows: Sequence[Loop], space: IndexSpace, prefix: str) -> Domain:
    """The loops of `root`, with the leading parallel ones renamed to the kernel's rows and put first."""
    own = domain_of(root, space, prefix)
    leading = own.parallel[: len(rows)]
    if [loop.extent for loop in leading] != [loop.extent for loop in rows]:
        raise DiagnosticError(
            f"{root.kind} does not have the rows of its kernel", pointers=[root.pointer], details={"stage": "schedule"}
        )
    names: dict[str, Dim] = {old.name: expr.symbol(row.name) for old, row in zip(leading, rows, strict=True)}
    return own.over((*rows, *(loop for loop in own.loops if loop.name not in names)), names)
