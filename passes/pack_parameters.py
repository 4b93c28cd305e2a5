"""linalg -> linalg: pack parameters once into the layouts that their kernels read best.

A pack is a kernel of its own, a `linalg.pack`, prepared when its parameter is bound. The reading kernel uses an affine
map with a quotient and a remainder, which every pass, also upstream, can lower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dialect.locations import node_at, node_pointers
from dialect.mlir import arith, func, ir, linalg, tensor
from dialect.module import PARAMETER, graph_function

from .attributes import encode
from .schedule.panels import Tiling
from .strategy import Strategies, matching
from .to_linalg.read_kernel import IN_PANELS, read_kernel
from .to_linalg.write_kernel import SUFFIX
from .values import NODES, PREPARE, ROWS, Range, functions_of, marked_arguments, read_symbols


def pack_parameters(module: ir.Module, strategies: Strategies[Any, Any], machine: Any) -> ir.Module:
    """Pack the parameters and prepared values that kernels read, if the strategy of a kernel has a packed layout for
    them.
    """
    graph = graph_function(module).operation
    with module.context, ir.Location.unknown():
        _Packer(module, graph, strategies, machine, functions_of(module), read_symbols(module)).run()
    return module


@dataclass
class _Packer:
    module: ir.Module
    graph: ir.Operation
    strategies: Strategies[Any, Any]
    machine: Any
    functions: dict[str, ir.Operation]
    symbols: Mapping[str, Range]
    fixed: set[ir.Value] = field(default_factory=set[ir.Value])
    tilings: dict[str, Sequence[Tiling]] = field(default_factory=dict[str, Sequence[Tiling]])
    packs: dict[tuple[str, Tiling], str] = field(default_factory=dict[Any, str])
    packed: dict[tuple[ir.Value, str], ir.Value] = field(default_factory=dict[Any, Any])

    def run(self) -> None:
        block = self.graph.regions[0].blocks[0]
        self.fixed.update(block.arguments[at] for at in marked_arguments(self.graph, PARAMETER))
        for op in list(block.operations):
            operation = op.operation
            is_window = operation.name == "kiln.buffer_view" and operation.operands[0] in self.fixed
            if is_window or PREPARE in operation.attributes:
                self.fixed.update(operation.results)
            elif operation.name == "func.call" and not self.fixed.isdisjoint(operation.operands):
                self._call(operation)
        self._drop_unused()

    def _call(self, call: Any) -> None:
        name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        if name not in self.tilings:
            body = read_kernel(self.functions, name, self.symbols)
            strategy, problem = matching(self.strategies, body)[0]
            with body.apart():
                self.tilings[name] = strategy.tilings(body, problem, self.machine)
        chosen = [tiling for tiling in self.tilings[name] if call.operands[tiling.operand] in self.fixed]
        if not chosen:
            return
        for tiling in chosen:
            call.operands[tiling.operand] = self._packed(call.operands[tiling.operand], tiling)
        reader = "_".join([name, "packed", *(str(tiling.operand) for tiling in chosen)])
        if reader not in self.functions:
            self._reader(reader, name, chosen)
        call.attributes["callee"] = ir.FlatSymbolRefAttr.get(reader)

    def _packed(self, value: ir.Value, tiling: Tiling) -> ir.Value:
        """The call that packs a value; all kernels that read it in the same panels share it."""
        target = _packed_type(value.type, tiling)
        name = self._pack(value.type, target, tiling)
        if (value, name) not in self.packed:
            owner = value.owner
            if isinstance(owner, ir.Block):
                nodes = [node_at(pointer) for pointer in node_pointers(value.location)]
                point = ir.InsertionPoint.at_block_begin(owner)
            else:
                nodes = list(ir.DenseI64ArrayAttr(owner.attributes[NODES])) if NODES in owner.attributes else []
                point = ir.InsertionPoint.after(owner)
            call = func.CallOp([target], name, [value], ip=point, loc=value.location)
            call.operation.attributes[NODES] = ir.DenseI64ArrayAttr.get(nodes)
            call.operation.attributes[PREPARE] = ir.UnitAttr.get()
            self.packed[value, name] = call.results[0]
        return self.packed[value, name]

    def _pack(self, source: ir.Type, target: ir.RankedTensorType, tiling: Tiling) -> str:
        """The kernel that packs values of a type; defined if needed."""
        known = (str(source), replace(tiling, operand=0))
        if known in self.packs:
            return self.packs[known]
        name = self.packs[known] = f"pack_{len(self.packs)}"
        with ir.InsertionPoint(self.module.body):
            declared = func.FuncOp(name, ([source], [target]), visibility="private")
            index = ir.IndexType.get()
            made = func.FuncOp(name + SUFFIX, ([source, *[index] * len(self.symbols)], [target]), visibility="private")
        rows = sum(extent != 1 for extent in target.shape)
        declared.attributes[ROWS] = encode(rows)
        block = made.add_entry_block()
        with ir.InsertionPoint(block):
            kind = target.element_type
            zero = arith.constant(kind, 0.0 if isinstance(kind, ir.FloatType) else 0)
            packed = linalg.pack(
                block.arguments[0],
                tensor.empty(target.shape, kind),
                [tiling.axis],
                [tiling.tile],
                padding_value=zero,
                outer_dims_perm=list(tiling.order),
            )
            func.ReturnOp([packed])
        self.functions |= {name: declared.operation, name + SUFFIX: made.operation}
        return name

    def _reader(self, name: str, kernel: str, tilings: Sequence[Tiling]) -> None:
        """Copy a kernel into one that reads packed arguments."""
        inputs: list[ir.Type] = []
        for suffix in ("", SUFFIX):
            copy = self.functions[kernel + suffix].clone(ip=ir.InsertionPoint(self.module.body)).operation
            copy.attributes["sym_name"] = ir.StringAttr.get(name + suffix)
            kind: Any = ir.FunctionType(ir.TypeAttr(copy.attributes["function_type"]).value)
            inputs = list(kind.inputs)
            for tiling in tilings:
                inputs[tiling.operand] = _packed_type(inputs[tiling.operand], tiling)
            copy.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, list(kind.results)))
            self.functions[name + suffix] = copy
        packed = {tiling.operand for tiling in tilings if not tiling.is_run}
        marks = [{IN_PANELS: None} if at in packed else {} for at in range(len(inputs) - len(self.symbols))]
        self.functions[name].attributes["arg_attrs"] = encode(marks)
        block = self.functions[name + SUFFIX].regions[0].blocks[0]
        for tiling in tilings:
            argument = block.arguments[tiling.operand]
            (use,) = argument.uses
            reader = use.owner.operation
            place = list(reader.operands).index(argument)
            argument.set_type(_packed_type(argument.type, tiling))
            maps = list(ir.ArrayAttr(reader.attributes["indexing_maps"]))
            maps[place] = ir.AffineMapAttr.get(_in_panels(ir.AffineMapAttr(maps[place]).value, tiling))
            reader.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)

    def _drop_unused(self) -> None:
        called = {
            ir.FlatSymbolRefAttr(op.operation.attributes["callee"]).value
            for op in self.graph.regions[0].blocks[0].operations
            if op.operation.name == "func.call"
        }
        for name in self.tilings:
            if name not in called:
                self.functions[name].erase()
                self.functions[name + SUFFIX].erase()


def _packed_type(kind: ir.Type, tiling: Tiling) -> ir.RankedTensorType:
    source: Any = ir.RankedTensorType(kind)
    return ir.RankedTensorType.get(tiling.shape(source.shape), source.element_type)


def _in_panels(map_: ir.AffineMap, tiling: Tiling) -> ir.AffineMap:
    """The map of a read of the packed argument, from the map of the unpacked one."""
    results = list(map_.results)
    tile = ir.AffineExpr.get_constant(tiling.tile)
    at = results[tiling.axis]
    results[tiling.axis] = ir.AffineExpr.get_floor_div(at, tile)
    return ir.AffineMap.get(
        map_.n_dims, 0, [*(results[axis] for axis in tiling.order), ir.AffineExpr.get_mod(at, tile)]
    )
