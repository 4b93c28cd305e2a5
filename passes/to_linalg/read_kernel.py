"""Read the linalg of a kernel back as its body: stages over loops, with the scalar program of each."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from dialect.mlir import ir
from dialect.remembered import Remembered
from dialect.types import dtype_of, type_of
from tensorkiln import expr
from tensorkiln.expr import Dim, symbol
from tensorkiln.nodes import ScatterKind
from tensorkiln.types import TensorType

from ..loops.body import KernelBody, Stage, Store
from ..loops.domain import Domain, Loop
from ..loops.index_space import IndexSpace
from ..loops.scalar_dag import Apply, Interner, Node
from ..origins import current, numbers_in
from ..values import ROWS, Function, Range, Value, kernel_text, marked_arguments
from .read_element import ElementReader
from .read_index import IndexReader, apply
from .scalar_ops import combined_kind
from .write_kernel import SCATTER, SCATTER_KIND, SUFFIX

IN_PANELS = "kiln.in_panels"
"""The unit attribute of a kernel argument that was packed in panels."""


_READ = Remembered[Hashable, KernelBody]()
"""Bodies by everything they depend on, since several stages read the same kernels."""


def read_kernel(functions: Mapping[str, ir.Operation], name: str, symbols: Mapping[str, Range]) -> KernelBody:
    """The body of the kernel `name` in a module with these functions; cached as long as the kernel is unchanged."""
    declared, defined = functions[name].attributes, functions[name + SUFFIX]
    text = kernel_text(defined)
    stated = tuple(hash(declared[each]) for each in ("function_type", ROWS, "arg_attrs") if each in declared)
    origins = current()
    # The marks of nodes are numbers of one record.
    key = (name, text, stated, tuple(symbols.items()), None if origins is None else origins.serial)
    known = _READ.within(defined.context)
    if key not in known:
        known[key] = _Reader(functions, name, symbols, text).read()
    return known[key]


class _Reader:
    def __init__(
        self, functions: Mapping[str, ir.Operation], name: str, symbols: Mapping[str, Range], text: str
    ) -> None:
        self.functions, self.text, self.records = functions, text, current() is not None
        declared, self.defined = functions[name], functions[name + SUFFIX]
        self.row_count = ir.IntegerAttr(declared.attributes[ROWS]).value
        self.space, self.nodes = IndexSpace(symbols), Interner()
        self.block = self.defined.regions[0].blocks[0]
        kind: Any = ir.FunctionType(ir.TypeAttr(declared.attributes["function_type"]).value)
        packed = marked_arguments(declared, IN_PANELS)
        arguments = tuple(
            Value("argument", (), self._type(t), "", at, {"in_panels": at in packed})
            for at, t in enumerate(kind.inputs)
        )
        self.returned = list(self.block.operations[len(self.block.operations) - 1].operands)
        made = dict(zip(self.returned, map(self._type, kind.results), strict=True))
        results = {value: Value("result", (), t, "", at) for at, (value, t) in enumerate(made.items())}
        self.results = results
        self.operands: list[Value] = [*arguments, *results.values()]
        self.local_from = len(self.operands)
        ordered = tuple(results[value] for value in self.returned)
        self.function = Function(name, arguments, (), ordered, symbols)
        inner = list(self.block.arguments)
        self.tensors = {value: (number, arguments[number]) for number, value in enumerate(inner[: len(arguments)])}
        names = {value: symbol(known) for value, known in zip(inner[len(arguments) :], symbols, strict=True)}
        self.index = IndexReader(names)
        self.shapes: dict[ir.Value, tuple[Dim, ...]] = {}
        self.rows: tuple[Loop, ...] = ()
        self.stages: list[Stage] = []

    def _type(self, kind: ir.Type) -> TensorType:
        """The type with dims in the form of affine maps, so that equal extents compare equal."""
        found = type_of(kind)
        return TensorType(found.dtype, tuple(map(self.space.floored, found.shape)), found.device)

    def read(self) -> KernelBody:
        if SCATTER in self.defined.attributes:
            return self._scatter()
        for op in self.block.operations:
            operation = op.operation
            if operation.name == "tensor.empty":
                (result,) = operation.results
                self.shapes[result] = self._shape(result.type, operation.operands)
            elif operation.name == "linalg.fill":
                self.shapes[operation.results[0]] = self.shapes[operation.operands[1]]
            elif operation.name == "tensor.extract_slice":
                (result,), (source, *sizes) = operation.results, operation.operands
                self.tensors[result] = self.tensors[source]
                self.shapes[result] = self._shape(result.type, sizes)
            elif operation.name == "linalg.generic":
                self._stage(operation)
            elif operation.name == "linalg.pack":
                self._pack(operation)
        stages, operands = tuple(self.stages), tuple(self.operands)
        return KernelBody(
            self.function, self.space, self.nodes, self.rows, stages, operands, self.local_from, self.text
        )

    def _scatter(self) -> KernelBody:
        axis, *numbers = ir.DenseI64ArrayAttr(self.defined.attributes[SCATTER])
        kind = ScatterKind(ir.StringAttr(self.defined.attributes[SCATTER_KIND]).value)
        (result,) = self.results.values()
        given = tuple(self.operands[number] for number in numbers)
        fields = {"axis": axis, "reduction": kind}
        root = Value("scatter", given, result.type, "", 0, fields, is_root=True)
        function = Function(self.function.name, self.function.arguments, (root,), (root,), self.function.symbols)
        operands = (*function.arguments, root)
        return KernelBody(function, self.space, self.nodes, (), (), operands, len(operands), self.text)

    def _shape(self, kind: ir.Type, dynamic: Sequence[ir.Value]) -> tuple[Dim, ...]:
        sizes = iter(dynamic)
        tensor: Any = ir.RankedTensorType(kind)
        return tuple(
            self.index(next(sizes)) if tensor.is_dynamic_dim(axis) else tensor.get_dim_size(axis)
            for axis in range(tensor.rank)
        )

    def _stage(self, operation: Any) -> None:
        count = len(operation.results)
        inputs, outputs = list(operation.operands)[:-count], list(operation.operands)[-count:]
        maps = [ir.AffineMapAttr(map_).value for map_ in ir.ArrayAttr(operation.attributes["indexing_maps"])]
        loops = self._loops(operation, [*inputs, *outputs], maps)
        values = [symbol(loop.name) for loop in loops]
        places = [tuple(map(self.space.simplified, apply(map_, list(values)))) for map_ in maps]
        reader = ElementReader(self.space, self.nodes, self.index, self.tensors, self.functions)
        block = operation.regions[0].blocks[0]
        for argument, source, place in zip(block.arguments, inputs, places, strict=False):
            if source in self.tensors:
                reader.values[argument] = reader.load(source, place)
        # Iterator types do not tell if the reduced dimension has one element.
        is_reduction = any(True for _ in block.arguments[len(inputs)].uses)
        if is_reduction:
            target: Any = ir.RankedTensorType(outputs[0].type)
            before = self.nodes.load(dtype_of(target.element_type), _BEFORE, 0, ())
            reader.values[block.arguments[len(inputs)]] = before
        for op in block.operations:
            inner = op.operation
            if inner.name == "linalg.index":
                axis = ir.IntegerAttr(inner.attributes["dim"]).value
                self.index.names[inner.results[0]] = values[axis]
            elif self.records:
                with self.nodes.marked(numbers_in(str(inner.location))):
                    reader.read(inner)
            else:
                reader.read(inner)
        yielded = list(block.operations[len(block.operations) - 1].operands)
        made: list[Node] = []
        for value, result in zip(yielded, operation.results, strict=True):
            known = self.results.get(result)
            made.append(reader.values[value] if known is None else reader.stored(value, known.dtype))
        # The stored byte of a bool is not an element.
        bytes_stored = {reader.values[value] for value in yielded} - set(made)
        combine, computed = None, [node for node in reader.computed if node not in bytes_stored]
        if is_reduction:
            (combination,) = made
            assert isinstance(combination, Apply), "a reduction combines what was before with an element"
            combine, element = combined_kind(combination), combination.args[1]
            if combine == "max" and element.dtype.is_integer:
                element = reader.signed_as(element, signed=combination.dtype.is_signed)
            computed = made = [element]
        results = [
            self._result(value, target, node)
            for value, target, node in zip(operation.results, outputs, made, strict=True)
        ]
        if self.records and (numbers := numbers_in(str(operation.location))):
            self.nodes.loops |= dict.fromkeys(results, numbers[0])
        address = self.space.flatten(places[len(inputs)], self.operands[results[0]].shape)
        stores = tuple(Store(self.operands[number], number, node) for number, node in zip(results, made, strict=True))
        elements = tuple(dict.fromkeys([*computed, *made]))
        self.stages.append(Stage(Domain(loops, (), address), combine, elements, stores))

    def _pack(self, operation: Any) -> None:
        """Read a pack as a map: an element of a panel is one of the source, or zero beyond its end."""
        source, target, *_ = operation.operands
        ((result, value),) = self.results.items()
        attributes = operation.attributes
        (axis,), (tile,), order = (
            tuple(ir.DenseI64ArrayAttr(attributes[name]))
            for name in ("inner_dims_pos", "static_inner_tiles", "outer_dims_perm")
        )
        shape = self.shapes[target]
        loops = tuple(Loop(f"r{at}", extent) for at, extent in enumerate(shape) if extent != 1)
        places = [self.space.add(f"r{at}", extent) if extent != 1 else 0 for at, extent in enumerate(shape)]
        self.rows = loops[: self.row_count]
        at = dict(zip(order, places, strict=False))
        extent = self.tensors[source][1].shape[axis]
        at[axis] = expr.add(expr.mul(at[axis], tile), places[-1])
        room = expr.sub(expr.sub(extent, 1), at[axis])
        reader = ElementReader(self.space, self.nodes, self.index, self.tensors, self.functions)
        conditions = () if self.space.is_nonnegative(room) else (room,)
        load = reader.load(source, tuple(at[axis] for axis in range(len(order))), conditions)
        element = self.nodes.guard(conditions, load) if conditions else load
        address = self.space.flatten(tuple(places), shape)
        number = self.operands.index(value)
        self.tensors[result] = (number, value)
        store = Store(value, number, element)
        self.stages.append(Stage(Domain(loops, (), address), None, (element,), (store,)))

    def _loops(self, operation: Any, tensors: Sequence[ir.Value], maps: Sequence[Any]) -> tuple[Loop, ...]:
        kinds = [str(kind) for kind in ir.ArrayAttr(operation.attributes["iterator_types"])]
        extents: dict[int, Dim] = {}
        for value, map_ in zip(tensors, maps, strict=True):
            shape = self.shapes[value] if value in self.shapes else self.tensors[value][1].shape
            for extent, result in zip(shape, map_.results, strict=True):
                if isinstance(result, ir.AffineDimExpr):
                    extents.setdefault(result.position, extent)
        number, count = len(self.stages), self.row_count
        loops = tuple(
            Loop(f"r{axis}" if axis < count else f"l{number}_{axis}", extents[axis], kind.endswith("<reduction>"))
            for axis, kind in enumerate(kinds)
        )
        # All stages share the rows, even if their extents are written differently.
        self.rows = self.rows or loops[:count]
        loops = (*self.rows[: len(loops)], *loops[count:])
        for loop in loops:
            self.space.add(loop.name, loop.extent)
        return loops

    def _result(self, value: ir.Value, target: ir.Value, element: Node) -> int:
        """The operand number of a result of a generic."""
        known = self.results.get(value)
        if known is None:
            known = Value("local", (), TensorType(element.dtype, self.shapes[target]), "", len(self.operands))
            self.operands.append(known)
        number = self.operands.index(known)
        self.tensors[value] = (number, known)
        return number


_BEFORE = -1
"""The operand number of a reduction's accumulator."""
