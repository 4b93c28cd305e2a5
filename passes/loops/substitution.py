"""Rewrite a stage to other loops by substituting index expressions for its loop indices."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from tensorkiln import expr
from tensorkiln.expr import Dim, Expr

from .body import KernelBody, Stage
from .domain import Domain, Loop
from .index_space import IndexSpace
from .scalar_dag import Apply, Choose, Condition, Constant, Guard, IndexValue, InRange, Interner, IsTrue, Load, Node


def over(
    body: KernelBody,
    stage: Stage,
    loops: Iterable[Loop],
    values: Mapping[str, Dim],
    operands: Mapping[int, int] | None = None,
) -> Stage:
    """`stage` over other loops; `values` gives the old loop indices in terms of them.

    Loads of an operand in `operands` become loads of the operand it maps to.
    """
    change = Substitution(body.space, body.nodes, values, operands or {})
    return replace(change.stage(stage), domain=Domain(tuple(loops), (), change.dim(stage.domain.address)))


def where_all_hold(stage: Stage, conditions: Collection[Dim], space: IndexSpace, nodes: Interner) -> Stage:
    """`stage` at points where the `conditions` are nonnegative."""
    return Substitution(space, nodes, {}, {}, conditions).stage(stage)


class Substitution:
    """Substitutes `values` for names in nodes and dims, and simplifies by the ranges in `space`. Conditions that `hold`
    are dropped.
    """

    def __init__(
        self,
        space: IndexSpace,
        nodes: Interner,
        values: Mapping[str, Dim],
        operands: Mapping[int, int],
        hold: Collection[Dim] = (),
    ) -> None:
        self.space, self.nodes, self.operands, self.hold = space, nodes, operands, hold
        self._values = dict(values)
        self._dims: dict[Dim, Dim] = {}
        self._memo: dict[int, Node] = {}

    def __call__(self, node: Node) -> Node:
        """`node` after the substitution."""
        known = self._memo.get(id(node))
        if known is None:
            if marks := self.nodes.marks.get(id(node), ()):
                with self.nodes.marked(marks):
                    known = self._node(node)
            else:
                known = self._node(node)
            self._memo[id(node)] = known
        return known

    def stage(self, stage: Stage) -> Stage:
        """`stage`, over the same loops, after the substitution."""
        elements = tuple(map(self, stage.elements))
        stores = tuple(replace(entry, element=self(entry.element)) for entry in stage.stores)
        return replace(stage, elements=elements, stores=stores)

    def dim(self, dim: Dim) -> Dim:
        """`dim` after the substitution."""
        if isinstance(dim, int):
            return dim
        known = self._dims.get(dim)
        if known is None:
            self._name_dynamic(dim)
            known = self._dims[dim] = self.space.simplified(expr.substitute(dim, self._values))
        return known

    def _name_dynamic(self, dim: Expr) -> None:
        """Give run-time indices in `dim` new names if their nodes change."""
        for name in expr.free_symbols(dim) & self.nodes.dynamic.keys() - self._values.keys():
            extent = self.dim(self.space.extents[name])
            changed = self.nodes.dynamic_name(self(self.nodes.dynamic[name]), extent)
            self._values[name] = self.space.add(changed, extent)

    def _node(self, node: Node) -> Node:
        nodes = self.nodes
        match node:
            case Constant():
                return node
            case IndexValue(dtype=dtype, index=index):
                return nodes.index_value(dtype, self.dim(index))
            case Load(dtype=dtype, operand=operand, address=address, conditions=conditions):
                kept = self._conditions(conditions)
                if kept is None:
                    return nodes.zero(dtype)
                return nodes.load(dtype, self.operands.get(operand, operand), self.dim(address), kept)
            case Apply(dtype=dtype, op=op, attributes=attributes, args=args):
                return nodes.apply(dtype, op, attributes, *map(self, args))
            case Guard(conditions=conditions, value=value):
                kept = self._conditions(conditions)
                if kept is None:
                    return nodes.zero(node.dtype)
                made = self(value)
                is_in_load = isinstance(made, Load) and all(condition in made.conditions for condition in kept)
                return made if is_in_load else nodes.guard(kept, made)
            case Choose(conditions=conditions, first=first, second=second):
                kept = self._conditions(conditions)
                return self(second) if kept is None else nodes.choose(kept, self(first), self(second))

    def _conditions(self, conditions: Sequence[Condition]) -> tuple[Condition, ...] | None:
        """The substituted conditions that may fail; None if one always fails."""
        kept: dict[Condition, None] = {}
        for condition in conditions:
            match condition:
                case InRange(value=value, extent=extent):
                    kept[self.nodes.in_range(self(value), self.dim(extent))] = None
                case IsTrue(value=value):
                    kept[self.nodes.is_true(self(value))] = None
                case _:
                    dim = self.dim(condition)
                    if self.space.is_nonnegative(expr.sub(-1, dim)):
                        return None
                    if not self.space.is_nonnegative(dim) and dim not in self.hold:
                        kept[dim] = None
        return tuple(kept)
