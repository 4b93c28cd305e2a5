"""Write a kernel as a function of `linalg.generic` on tensors: one for each map or reduction, the same for every
target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dialect.mlir import func, ir, linalg, tensor
from dialect.named_ops import fill
from passes import scalar
from tensorkiln.expr import Dim, free_symbols, symbol

from ..loops.accesses import loads
from ..loops.body import KernelBody, Stage
from ..loops.domain import Loop
from ..loops.index_space import linear_form, name_of
from ..loops.scalar_dag import COMBINE, Interner, Load, indices, walk
from ..loops.scatter import is_scatter, root_of
from ..origins import at_stage
from ..scalar.registers import from_memory, register_type, stored_type, to_register
from ..values import Value
from .scalar_ops import Operation, ScalarFunctions
from .write_element import ElementWriter, stored
from .write_index import IndexWriter
from .write_scatter import ScatterWriter

SUFFIX = "_linalg"
"""Suffix of the name of a kernel's linalg function."""
SCATTER = "kiln.scatter"
"""Attribute of the linalg function of a scatter: its axis, and the arguments with its indices, updates and, if there
are any, initial values."""
SCATTER_KIND = "kiln.reduction"
"""Attribute of the linalg function of a scatter: its reduction."""


def tensor_of(value: Value, *, crosses: bool) -> ir.RankedTensorType:
    """The type of a value in a kernel: elements have their register type, except bools that cross its boundary.

    A 16-bit float is its bits, as in all kernel code; a bool outside the kernel is a byte.
    """
    extents = [extent if isinstance(extent, int) else ir.ShapedType.get_dynamic_size() for extent in value.shape]
    element = (stored_type if crosses else register_type)(value.dtype)
    return ir.RankedTensorType.get(extents, element)


class KernelWriter:
    """Writes the linalg of a kernel: a function that takes the kernel's arguments, then the value of each symbol of the
    graph, and returns its results.
    """

    def __init__(self, body: KernelBody, scalars: ScalarFunctions) -> None:
        self.body, self.scalars = body, scalars
        self.symbols = tuple(body.function.symbols)
        self.tensors: dict[int, ir.Value] = {}

    def write(self) -> ir.Operation:
        """Write the function at the current insertion point."""
        body, function = self.body, self.body.function
        index = ir.IndexType.get()
        inputs = [tensor_of(value, crosses=True) for value in function.arguments]
        outputs = [tensor_of(value, crosses=True) for value in function.results]
        made = func.FuncOp(
            function.name + SUFFIX, ([*inputs, *[index] * len(self.symbols)], outputs), visibility="private"
        )
        block = made.add_entry_block()
        arguments = list(block.arguments)
        self.tensors = dict(enumerate(arguments[: len(inputs)]))
        with ir.InsertionPoint(block):
            names = dict(zip(self.symbols, arguments[len(inputs) :], strict=True))
            self.index = IndexWriter(body.space, frozenset(self.symbols), names)
            numbers = body.numbers
            if is_scatter(body):
                root = root_of(body)
                given = [self.tensors[numbers[value]] for value in root.operands]
                empty = self._empty(root.shape, tensor_of(root, crosses=True).element_type)
                self.tensors[numbers[root]] = ScatterWriter(root, given, self.scalars).write(empty, self.index)
                made.attributes[SCATTER] = ir.DenseI64ArrayAttr.get(
                    [root.int("axis"), *(numbers[value] for value in root.operands)]
                )
                made.attributes[SCATTER_KIND] = ir.StringAttr.get(root.text("reduction"))
            for stage in body.stages:
                if stage.stores:
                    with at_stage(body.nodes, stage):
                        self._stage(stage)
            func.ReturnOp([self.tensors[numbers[value]] for value in function.results])
        return made.operation

    def _stage(self, stage: Stage) -> None:
        """Write a stage as one generic; its results are the stage's stores."""
        body, loops = self.body, stage.domain.loops
        reads = direct_reads(stage, body.nodes)
        inputs = [self._operand(load, loops) for load in reads]
        maps = [_affine_map(loops, load.index) for load in reads]
        stated = {result.position for map_ in maps for result in map_.results if isinstance(result, ir.AffineDimExpr)}
        for axis, loop in enumerate(loops):
            if loop.is_reduction and axis not in stated:
                # An operand that defines the extent.
                inputs.append(self._empty((loop.extent,), ir.IntegerType.get_signless(8)))
                maps.append(ir.AffineMap.get(len(loops), 0, [ir.AffineExpr.get_dim(axis)]))
        outputs = [self._output(stage, entry.root, entry.operand) for entry in stage.stores]
        for entry in stage.stores:
            places = iter(stage.domain.parallel)
            index = [0 if extent == 1 else symbol(next(places).name) for extent in entry.root.shape]
            maps.append(_affine_map(loops, index))
        op: Any = linalg.GenericOp(
            [value.type for value in outputs],
            inputs,
            outputs,
            ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps]),
            iterator_types(loop.is_reduction for loop in loops),
        )
        elements = [ir.RankedTensorType(value.type).element_type for value in (*inputs, *outputs)]
        block = op.regions[0].blocks.append(*elements)
        with ir.InsertionPoint(block):
            used = _names_in(stage, body.nodes, reads)
            names = {loop.name: linalg.IndexOp(axis).result for axis, loop in enumerate(loops) if loop.name in used}
            at_hand = {id(load): from_memory(load.dtype, block.arguments[number]) for number, load in enumerate(reads)}
            index = self.index.inside(names)
            element = ElementWriter(body.nodes, index, self.tensors, at_hand, self.scalars)
            for node in stage.elements:
                element(node)
            values = [element(entry.element) for entry in stage.stores]
            if stage.combine is not None:
                dtype = stage.stores[0].element.dtype
                before = from_memory(dtype, block.arguments[len(inputs)])
                combine = Operation(COMBINE, (stage.combine,), dtype, (dtype, dtype))
                values = [self.scalars(combine, [before, values[0]])]
            kinds = elements[len(inputs) :]
            linalg.yield_(
                [
                    stored(entry.element.dtype, value, kind)
                    for entry, value, kind in zip(stage.stores, values, kinds, strict=True)
                ]
            )
        for entry, result in zip(stage.stores, op.results, strict=True):
            self.tensors[entry.operand] = result

    def _operand(self, load: Load, loops: Sequence[Loop]) -> ir.Value:
        """The tensor operand of a load, sliced if a loop does not run over all of a dimension."""
        source, value = self.tensors[load.operand], self.body.operands[load.operand]
        extents = {loop.name: loop.extent for loop in loops}
        sizes = [extents.get(name_of(at), extent) for at, extent in zip(load.index, value.shape, strict=True)]
        if tuple(sizes) == value.shape:
            return source
        static = [size if isinstance(size, int) else ir.ShapedType.get_dynamic_size() for size in sizes]
        kind = ir.RankedTensorType.get(static, ir.RankedTensorType(source.type).element_type)
        none = ir.DenseI64ArrayAttr.get([0] * len(sizes))
        one = ir.DenseI64ArrayAttr.get([1] * len(sizes))
        dynamic = [self.index(size) for size in sizes if not isinstance(size, int)]
        return tensor.ExtractSliceOp(kind, source, [], dynamic, [], none, ir.DenseI64ArrayAttr.get(static), one).result

    def _output(self, stage: Stage, root: Value, operand: int) -> ir.Value:
        kind = tensor_of(root, crosses=not self.body.is_local(operand))
        empty = self._empty(root.shape, kind.element_type)
        if stage.combine is None:
            return empty
        dtype = stage.stores[0].element.dtype
        identity = to_register(dtype, scalar.reduce_identity(stage.combine, dtype))
        return fill(stored(dtype, identity, kind.element_type), empty)

    def _empty(self, shape: Sequence[Dim], element: ir.Type) -> ir.Value:
        return tensor.empty([extent if isinstance(extent, int) else self.index(extent) for extent in shape], element)


def direct_reads(stage: Stage, nodes: Interner) -> list[Load]:
    """The loads that can be operands of the stage's generic: unconditional, with an affine map of its loops."""
    names = [loop.name for loop in stage.domain.loops]
    found = [load for load in loads(stage.elements, nodes) if not load.conditions and _is_affine(load, names)]
    return sorted(found, key=lambda load: (load.operand, [str(at) for at in load.index]))


def _names_in(stage: Stage, nodes: Interner, reads: Sequence[Load]) -> frozenset[str]:
    """The names whose values the stage's body needs, besides those in loads that are operands."""
    direct = set(map(id, reads))
    found = (node for node in walk(stage.elements, nodes) if id(node) not in direct)
    return frozenset[str]().union(
        *(
            free_symbols(index)
            for node in found
            for index in (*indices(node), *(node.index if isinstance(node, Load) else ()))
        )
    )


def _is_affine(load: Load, names: Sequence[str]) -> bool:
    for at in load.index:
        form = linear_form(at, names)
        if form is None or not all(isinstance(part, int) for part in (form[0], *form[1])):
            return False
    return True


def _affine_map(loops: Sequence[Loop], index: Sequence[Dim]) -> ir.AffineMap:
    names = [loop.name for loop in loops]
    results: list[ir.AffineExpr] = []
    for at in index:
        form = linear_form(at, names)
        assert form is not None, "only linear reads are operands"
        result = ir.AffineExpr.get_constant(form[0])
        for axis, stride in enumerate(form[1]):
            if stride != 0:
                result = ir.AffineExpr.get_add(
                    result, ir.AffineExpr.get_mul(ir.AffineExpr.get_dim(axis), ir.AffineExpr.get_constant(stride))
                )
        results.append(result)
    return ir.AffineMap.get(len(loops), 0, results)


def iterator_types(are_reductions: Iterable[bool]) -> ir.Attribute:
    """The iterator types attribute of a generic."""
    kinds = ("reduction" if is_reduction else "parallel" for is_reduction in are_reductions)
    # One parse is faster than one per loop.
    return ir.Attribute.parse(f"[{', '.join(f'#linalg.iterator_type<{kind}>' for kind in kinds)}]")
