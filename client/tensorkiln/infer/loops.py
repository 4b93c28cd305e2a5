"""While: a node with two regions, each inferred separately with the symbols of the outer graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..dtypes import DType
from ..errors import TensorkilnError
from ..limits import MAX_LOOP_DEPTH, MAX_NODES
from ..nodes import AnyNode, Assign, Bind, Buffer, BufferView, Copy, Kernel, Multi, Region, Sink, SymVar, While
from ..types import TensorType
from .inference import Inference
from .legality import STORED
from .scope import Scope
from .stated import StatedGraph, StatedVar

_OUTSIDE: Final = frozenset({Assign, Bind, Buffer, BufferView, Copy, Kernel, Multi, Sink})
"""Kinds that are not allowed in a region: they concern storage, devices, symbols or kernels of the whole graph."""


@dataclass(frozen=True, slots=True)
class RegionGraph:
    """A region as a graph for inference."""

    region: Region
    symbols: Mapping[str, tuple[int, int]]

    @property
    def nodes(self) -> Sequence[AnyNode]:
        return self.region.nodes

    @property
    def vars_metadata(self) -> Mapping[int, StatedVar]:
        return self.region.vars_metadata

    @property
    def input_vars(self) -> Sequence[int]:
        return self.region.input_vars

    @property
    def parameter_vars(self) -> Sequence[int]:
        return ()

    @property
    def output_vars(self) -> Sequence[int]:
        return self.region.output_vars

    @property
    def symbolic_vars(self) -> Sequence[SymVar]:
        return [
            SymVar.model_construct(name=name, min_val=low, max_val=high) for name, (low, high) in self.symbols.items()
        ]


Infer = Callable[[StatedGraph, int], Inference]


def while_types(node: While, scope: Scope, infer: Infer, depth: int) -> tuple[TensorType, ...]:
    """The types of `output_vars`; `infer` infers a region, nested in `depth` loops."""
    if depth > MAX_LOOP_DEPTH:
        scope.over("loop_depth", MAX_LOOP_DEPTH, depth, what="this loop", advice=" levels of loops around its turns")
    carried = [_operand(scope, var) for var in node.in_vars]
    if len(node.output_vars) > len(carried):
        message = f"a loop has at most as many output_vars as in_vars, here {len(node.output_vars)} and {len(carried)}"
        scope.fail(message, "output_vars")
    (goes_on,) = _results(node.condition, "condition", scope, carried, 1, infer, depth)
    if goes_on.dtype is not DType.BOOL or goes_on.shape:
        scope.fail(f"a condition gives one bool of rank 0, not {goes_on}", "condition/output_vars/0")
    given = _results(node.body, "body", scope, carried, len(node.output_vars), infer, depth)
    for place, (before, after) in enumerate(zip(carried, given, strict=False)):
        _require_alike(scope, before, after, f"value {place}", f"body/output_vars/{place}")
    return tuple(carried[: len(given)])


def count_nodes(nodes: Sequence[AnyNode]) -> int:
    """The number of nodes, including those in regions."""
    loops = [node for node in nodes if type(node) is While]
    return len(nodes) + sum(count_nodes(node.condition.nodes) + count_nodes(node.body.nodes) for node in loops)


def require_few_nodes(graph: StatedGraph, scope: Scope) -> None:
    """Refuse a graph with too many nodes, including those in its loops."""
    total = count_nodes(graph.nodes)
    if total > MAX_NODES:
        scope.over("nodes", MAX_NODES, total, what="the graph with its loops")


def _operand(scope: Scope, var: int) -> TensorType:
    found = scope.types[var]
    if found.dtype not in STORED:
        scope.fail(f"a loop does not carry {found.dtype}", "in_vars")
    scope.require_storable(found, "in_vars")
    return found


def _results(
    region: Region, name: str, scope: Scope, carried: Sequence[TensorType], count: int, infer: Infer, depth: int
) -> list[TensorType]:
    """The output types of a region whose inputs are the carried values."""
    _require_inside(region, name, scope)
    for what, listed, expected in (("inputs", region.input_vars, len(carried)), ("outputs", region.output_vars, count)):
        if len(listed) != expected:
            field = f"{name}/{what[:-1]}_vars"
            scope.fail(f"the {name} of this loop has {expected} {what}, here {len(listed)}", field)
    try:
        found = infer(RegionGraph(region, scope.symbols), depth)
    except TensorkilnError as error:
        error.pointers = tuple(f"{scope.pointer}/{name}{pointer}" for pointer in error.pointers)
        raise
    unknown = found.symbols.keys() - scope.symbols.keys()
    if unknown:
        scope.fail(f"the symbol {min(unknown)} is not declared around the loop: add it to symbolic_vars", name)
    for each in found.constraints:
        require = scope.require_eq if each.kind == "eq" else scope.require_ge
        require(each.left, each.right, f"in the {name} of a loop, {each.message}", name)
    for place, (outside, var) in enumerate(zip(carried, region.input_vars, strict=True)):
        _require_alike(scope, outside, found.types[var], f"input {place} of the {name}", f"{name}/input_vars/{place}")
    return [found.types[var] for var in region.output_vars]


def _require_inside(region: Region, name: str, scope: Scope) -> None:
    for index, node in enumerate(region.nodes):
        if type(node) in _OUTSIDE:
            scope.unsupported(f"a {node.node} cannot stand inside of a loop", f"{name}/nodes/{index}")
    for var, stated in region.vars_metadata.items():
        if stated.device is not None:
            scope.unsupported("vars inside of a loop name no device", f"{name}/vars_metadata/{var}/device")


def _require_alike(scope: Scope, one: TensorType, other: TensorType, what: str, field: str) -> None:
    if one.dtype is not other.dtype:
        scope.fail(f"{what} of a loop is {one.dtype} before a turn and {other.dtype} in it", field)
    scope.require_same_shape(one.shape, other.shape, f"{what} of a loop has one shape", field)
