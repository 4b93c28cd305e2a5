"""Cut the graph function into one function per kernel.

After it `@graph` holds calls, in an order that respects every dependency, and beside them only what no kernel computes:
tables, empty values, copies to other devices and custom operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dialect.memory import BufferOp
from dialect.mlir import func, ir
from dialect.module import FUNCTION, SYMBOLS
from tensorkiln import expr
from tensorkiln.types import TensorType

from ..values import ROOT, Function, Value
from .grouping import Group
from .materialise import lives_in_memory

ROWS = "kiln.rows"
"""On a kernel function: how many leading loops its roots share."""


def is_empty(value: Value) -> bool:
    """Whether the value has no elements, whatever the symbols are."""
    return expr.product(value.shape) == 0


def outline(source: ir.Operation, function: Function, groups: Sequence[Group], host: Iterable[Value]) -> ir.Module:
    """A new module with `@graph` and the kernels of `groups`; `host` are values made by neither kernel nor argument."""
    module = ir.Module.create(loc=source.location)
    _Outliner(module, source, function, groups).run(host)
    return module


class _Outliner:
    def __init__(self, module: ir.Module, source: ir.Operation, function: Function, groups: Sequence[Group]) -> None:
        self.module, self.source, self.function, self.groups = module, source, function, groups
        self.ops: list[Any] = list(source.regions[0].blocks[0].operations)
        self.home = {root: number for number, group in enumerate(groups) for root in group.roots}
        self.used_outside = self._used_outside()

    def _used_outside(self) -> set[Value]:
        used = set(self.function.results)
        for number, group in enumerate(self.groups):
            used |= {value for value in group.reads if self.home.get(value) != number}
        return used

    def run(self, host: Iterable[Value]) -> None:
        types = self.source.attributes["function_type"].value
        with ir.InsertionPoint(self.module.body), self.source.location:
            graph = func.FuncOp(FUNCTION, types)
            if SYMBOLS in self.source.attributes:
                graph.attributes[SYMBOLS] = self.source.attributes[SYMBOLS]
            arguments = self.source.regions[0].blocks[0].arguments
            block = graph.add_entry_block([argument.location for argument in arguments])
        made: dict[Value, ir.Value] = dict(zip(self.function.arguments, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for value in host:
                made[value] = self._host_value(value)
            for number, group in enumerate(self.groups):
                self._emit(number, group, made)
            func.ReturnOp([made[result] for result in self.function.results], loc=self.source.location)

    def _host_value(self, value: Value) -> ir.Value:
        op = self.ops[value.position].operation
        if lives_in_memory(value):
            return op.clone().results[0]
        storage = BufferOp.make(
            [], TensorType(value.dtype, value.shape), loc=op.location, size_in_elements=0, device="CPU"
        )
        return storage.results[0]

    def _emit(self, number: int, group: Group, made: dict[Value, ir.Value]) -> None:
        root = group.roots[0]
        if root.kind in ("custom", "copy"):
            copy = self.ops[root.position].operation.clone()
            for place, operand in enumerate(root.operands):
                copy.operands[place] = made[operand]
            made[root] = copy.results[0]
            return
        results = [value for value in group.roots if value in self.used_outside]
        if not results:
            return
        outside = (value for value in group.reads if self.home.get(value) != number)
        operands = sorted(outside, key=lambda value: (value.kind, value.position))
        name = f"kernel_{number}"
        location = self.ops[root.position].operation.location
        self._kernel(name, group, operands, results, made, location)
        types = [self._type(value) for value in results]
        call = func.CallOp(types, name, [made[value] for value in operands], loc=location)
        made |= dict(zip(results, call.results, strict=True))

    def _type(self, value: Value) -> ir.Type:
        return self.ops[value.position].operation.results[0].type

    def _kernel(
        self,
        name: str,
        group: Group,
        operands: Sequence[Value],
        results: Sequence[Value],
        made: Mapping[Value, ir.Value],
        location: ir.Location,
    ) -> None:
        types = [made[value].type for value in operands], [self._type(value) for value in results]
        with ir.InsertionPoint(self.module.body):
            kernel = func.FuncOp(name, types, visibility="private", loc=location)
        kernel.attributes[ROWS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), group.rows)
        block = kernel.add_entry_block([location] * len(operands))
        inside: dict[Value, ir.Value] = dict(zip(operands, block.arguments, strict=True))
        roots = frozenset(group.roots)
        with ir.InsertionPoint(block):
            for value in needed_for(group.roots, inside):
                copy = self.ops[value.position].operation.clone()
                for place, operand in enumerate(value.operands):
                    copy.operands[place] = inside[operand]
                if value in roots:
                    copy.attributes[ROOT] = ir.UnitAttr.get()
                inside[value] = copy.results[0]
            func.ReturnOp([inside[value] for value in results], loc=location)


def needed_for(roots: Iterable[Value], available: Mapping[Value, object]) -> list[Value]:
    """The values to compute for `roots` from those that are available, in order."""
    needed: set[Value] = set()
    stack = list(roots)
    while stack:
        value = stack.pop()
        if value not in needed and value not in available:
            needed.add(value)
            stack.extend(value.operands)
    return sorted(needed, key=lambda value: value.position)
