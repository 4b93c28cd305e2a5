"""Cut the graph function into one function per kernel.

Afterwards `@graph` holds calls, in an order that respects every dependency, and the values that no kernel computes:
tables, empty values, copies to other devices, custom operations, buffer views of values inside another value, and cats
of parts computed in place.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from dialect.conversion import BitcastOp
from dialect.locations import node_at
from dialect.memory import BufferOp, BufferViewOp
from dialect.mlir import func, ir
from dialect.module import FUNCTION, NODE, SYMBOLS
from dialect.movement import CatOp
from tensorkiln import expr
from tensorkiln.types import TensorType

from ..attributes import encode
from ..values import APART, BODY, NODES, PREPARE, ROOT, ROOTS, ROWS, Function, Value
from .groups import Group, Grouping, with_bases
from .materialise import lives_in_memory
from .windows import AS_IT_IS, Window


def _node(value: Value | None) -> int:
    return node_at(value.pointer) if value is not None and value.pointer else -1


def view(window: Window, base: ir.Value, kind: TensorType, location: ir.Location) -> ir.Value:
    """Emit the op for the part of `base` that the window describes."""
    size = expr.product(kind.shape)
    return BufferViewOp.make([base], kind, loc=location, size=size, offset=window.first_element).results[0]


class Outliner:
    """Writes a new module with `@graph` and the kernels of a grouping."""

    def __init__(self, source: ir.Operation, function: Function, grouping: Grouping) -> None:
        self.module = ir.Module.create(loc=source.location)
        self.source, self.function = source, function
        self.groups, self.windows, self.assemblies = grouping.groups, grouping.windows, grouping.assemblies
        self.apart = grouping.apart
        self.ops: list[Any] = list(source.regions[0].blocks[0].operations)
        self.home = {root: number for number, group in enumerate(self.groups) for root in group.roots}
        self.outside = [
            {value for value in group.all_reads() if self.home.get(value) != number}
            for number, group in enumerate(self.groups)
        ]
        used = set(function.results).union(*self.outside)
        self.used_outside = with_bases(used, self.windows, self.assemblies)

    def run(self, host: Iterable[Value]) -> ir.Module:
        """Write the module, once; `host` are values that are neither arguments nor computed by a kernel."""
        types = self.source.attributes["function_type"].value
        with ir.InsertionPoint(self.module.body), self.source.location:
            graph = func.FuncOp(FUNCTION, types)
            for name in (SYMBOLS, "arg_attrs"):
                if name in self.source.attributes:
                    graph.attributes[name] = self.source.attributes[name]
            arguments = self.source.regions[0].blocks[0].arguments
            block = graph.add_entry_block([argument.location for argument in arguments])
        made: dict[Value, ir.Value] = dict(zip(self.function.arguments, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for value in host:
                op = self.ops[value.position].operation
                made[value] = op.clone().results[0] if lives_in_memory(value) else self._storage(value, op.location)
            for number, group in enumerate(self.groups):
                self._emit(number, group, made)
            func.ReturnOp([self._in_memory(result, made) for result in self.function.results], loc=self.source.location)
        return self.module

    def _in_memory(self, value: Value, made: dict[Value, ir.Value]) -> ir.Value:
        """`value` in the graph function; a value without a kernel is assembled at its first use."""
        if value not in made:
            location = self.ops[value.position].operation.location
            type_ = TensorType(value.dtype, value.shape)
            if value in self.windows:
                window = self.windows[value]
                made[value] = view(window, self._in_memory(window.base, made), type_, location)
            else:
                whole = self._joined(value, made, location)
                made[value] = view(Window(value, 0), whole, type_, location)
        return made[value]

    def _joined(self, value: Value, made: dict[Value, ir.Value], location: ir.Location) -> ir.Value:
        """The parts of an assembled value, flattened to one axis and joined."""
        assembly = self.assemblies[value]
        parts: list[ir.Value] = []
        for part, size in zip(assembly.parts, assembly.sizes, strict=True):
            count = expr.split_multiple(size, value.dtype.itemsize)[0]
            base = self._in_memory(part.base, made)
            parts.append(view(part, base, TensorType(value.dtype, (count,)), location))
        flat = TensorType(value.dtype, (expr.product(value.shape),))
        return CatOp.make(parts, flat, loc=location, axis=0).results[0]

    def _storage(self, value: Value, location: ir.Location) -> ir.Value:
        """A buffer as large as `value`, of which nothing is read."""
        size, kind = expr.product(value.shape), TensorType(value.dtype, value.shape)
        return BufferOp.make([], kind, loc=location, size_in_elements=size, device="CPU").results[0]

    def _emit(self, number: int, group: Group, made: dict[Value, ir.Value]) -> None:
        root = group.roots[0]
        if root.kind in AS_IT_IS:
            operands = [self._in_memory(operand, made) for operand in root.operands]
            copy = self.ops[root.position].operation.clone()
            for place, operand in enumerate(operands):
                copy.operands[place] = operand
            made[root] = copy.results[0]
            return
        results = [value for value in group.roots if value in self.used_outside]
        outside = self.outside[number]
        unread = group.all_unread() - frozenset(group.roots)
        read, made_here = self._behind(group.roots, outside | unread)
        # In reading order, so that kernels with the same computation have the same text.
        operands = [value for value in read if value in outside]
        name = f"kernel_{number}"
        location = self.ops[root.position].operation.location
        arguments = [self._in_memory(value, made) for value in operands]
        given = dict(zip(operands, arguments, strict=True))
        ordered = sorted(unread, key=attrgetter("kind", "position"))
        body = self._kernel(name, group, given, ordered, made_here, results, location)
        types = [self._type(value) for value in results]
        call = func.CallOp(types, name, arguments, loc=location)
        nodes = sorted({node_at(value.pointer) for value in made_here if value.pointer})
        call.operation.attributes[NODES] = ir.DenseI64ArrayAttr.get(nodes)
        call.operation.attributes[BODY] = ir.DenseI64ArrayAttr.get([_node(value) for value in body])
        roots = frozenset(group.roots)
        parts = (self._nodes_of(root, outside | unread | roots) for root in made_here if root in roots)
        call.operation.attributes[ROOTS] = ir.ArrayAttr.get([ir.DenseI64ArrayAttr.get(part) for part in parts])
        apart = [
            (at, _node(value), _node(root), self.apart[value, root])
            for root in group.roots
            for at, value in enumerate(operands)
            if (value, root) in self.apart
        ]
        if apart:
            call.operation.attributes[APART] = encode(list(dict.fromkeys(apart)))
        if group.is_prepared:
            call.operation.attributes[PREPARE] = ir.UnitAttr.get()
        made |= dict(zip(results, call.results, strict=True))

    def _operands(self, value: Value) -> tuple[Value, ...]:
        window = self.windows.get(value)
        return value.operands if window is None else (window.base,)

    def _type(self, value: Value) -> ir.Type:
        return self.ops[value.position].operation.results[0].type

    def _kernel(
        self,
        name: str,
        group: Group,
        operands: Mapping[Value, ir.Value],
        unread: Iterable[Value],
        computed: Iterable[Value],
        results: Sequence[Value],
        location: ir.Location,
    ) -> list[Value | None]:
        """Write the kernel; returns the graph value that each of its operations computes, or None."""
        types = [argument.type for argument in operands.values()], [self._type(value) for value in results]
        with ir.InsertionPoint(self.module.body):
            kernel = func.FuncOp(name, types, visibility="private", loc=location)
        kernel.attributes[ROWS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), group.rows)
        block = kernel.add_entry_block([location] * len(operands))
        inside: dict[Value, ir.Value] = dict(zip(operands, block.arguments, strict=True))
        roots = frozenset(group.roots)
        with ir.InsertionPoint(block):
            inside |= {value: self._storage(value, location) for value in unread}
            written: list[Value | None] = [None] * (len(inside) - len(operands))
            for value in computed:
                written.append(value)
                if value in self.windows:
                    inside[value] = self._window(value, inside)
                    written += [value] * (self.windows[value].base.dtype is not value.dtype)
                    continue
                copy = self.ops[value.position].operation.clone()
                for place, operand in enumerate(value.operands):
                    copy.operands[place] = inside[operand]
                if NODE in copy.attributes:
                    # Kernels with the same computation at other nodes must have the same text.
                    del copy.attributes[NODE]
                if value in roots:
                    copy.attributes[ROOT] = ir.UnitAttr.get()
                inside[value] = copy.results[0]
            func.ReturnOp([inside[value] for value in results], loc=location)
        return written

    def _nodes_of(self, root: Value, stops: Container[Value]) -> list[int]:
        """The numbers of the nodes computed for a root, up to values in memory and other roots."""
        found = {root: _node(root)}
        stack = [root]
        while stack:
            for operand in self._operands(stack.pop()):
                if operand not in found and operand not in stops:
                    found[operand] = _node(operand)
                    stack.append(operand)
        return sorted(set(found.values()) - {-1})

    def _window(self, value: Value, inside: Mapping[Value, ir.Value]) -> ir.Value:
        """A window in a kernel: elements of its base, bitcast if the dtypes differ."""
        window, location = self.windows[value], self.ops[value.position].operation.location
        base = window.base
        elements = view(window, inside[base], TensorType(base.dtype, value.shape), location)
        if base.dtype is value.dtype:
            return elements
        return BitcastOp.make([elements], TensorType(value.dtype, value.shape), loc=location).results[0]

    def _behind(self, roots: Iterable[Value], given: Container[Value]) -> tuple[list[Value], list[Value]]:
        """The given values that `roots` read, and the values to compute, each after its operands.

        Both orders depend on the roots alone, not on positions in the graph.
        """
        read: dict[Value, None] = {}
        made: dict[Value, None] = {}
        stack = [(root, False) for root in reversed(list(roots))]
        while stack:
            value, is_behind_operands = stack.pop()
            if value in given:
                read[value] = None
            elif is_behind_operands:
                made[value] = None
            elif value not in made:
                stack.append((value, True))
                stack.extend((operand, False) for operand in reversed(self._operands(value)))
        return list(read), list(made)
