"""Write a scatter as loops over tensors: the initial values, then the updates in order, so that the last one wins."""

from __future__ import annotations

from collections.abc import Sequence

from dialect.mlir import arith, ir, linalg, scf, tensor
from dialect.named_ops import fill
from tensorkiln.nodes import ScatterKind

from ..loops.scatter import init_of
from ..scalar.registers import from_memory, zero
from ..values import Value
from .node_writer import as_index
from .scalar_ops import Operation, ScalarFunctions
from .write_element import stored
from .write_index import IndexWriter


class ScatterWriter:
    """Writes a scatter at the current insertion point.

    `arguments` are the indices, the updates and the initial values if there are any.
    """

    def __init__(self, root: Value, arguments: Sequence[ir.Value], scalars: ScalarFunctions) -> None:
        self.root, self.scalars = root, scalars
        self.indices, self.updates, *self.inits = arguments

    def write(self, empty: ir.Value, index: IndexWriter) -> ir.Value:
        """Combine `out[..., indices[i], ...]` with `updates[i]` for every i in order, if the index is within `out`.

        `out` begins as the initial values, or as zeros; `empty` is a tensor of its shape.
        """
        return self._over((), self._begun(empty), index)

    def _begun(self, empty: ir.Value) -> ir.Value:
        dtype, kind = self.root.dtype, ir.RankedTensorType(empty.type)
        if init_of(self.root) is None:
            return fill(stored(dtype, zero(dtype), kind.element_type), empty)
        same = ir.AffineMapAttr.get(ir.AffineMap.get_identity(kind.rank))
        maps, parallel = ir.ArrayAttr.get([same, same]), ir.Attribute.parse("#linalg.iterator_type<parallel>")
        copied = linalg.GenericOp([kind], self.inits, [empty], maps, ir.ArrayAttr.get([parallel] * kind.rank))
        block = copied.regions[0].blocks.append(kind.element_type, kind.element_type)
        with ir.InsertionPoint(block):
            # Any byte but 0 is true; 1 is stored.
            linalg.yield_([stored(dtype, from_memory(dtype, block.arguments[0]), kind.element_type)])
        return copied.results[0]

    def _over(self, at: tuple[ir.Value, ...], target: ir.Value, index: IndexWriter) -> ir.Value:
        updates = self.root.operands[1]
        if len(at) == len(updates.shape):
            return self._update(at, target, index)
        loop = scf.ForOp(index(0), index(updates.shape[len(at)]), index(1), [target])
        with ir.InsertionPoint(loop.body):
            inner = index.inside()
            scf.YieldOp([self._over((*at, loop.induction_variable), loop.inner_iter_args[0], inner)])
        return loop.results[0]

    def _update(self, at: tuple[ir.Value, ...], target: ir.Value, index: IndexWriter) -> ir.Value:
        root, axis = self.root, self.root.int("axis")
        shape = root.operands[0].shape
        own = [index(0) if extent == 1 else place for place, extent in zip(at, shape, strict=True)]
        place = as_index(root.operands[0].dtype, tensor.ExtractOp(self.indices, own).result)
        # A negative index is a huge unsigned one.
        is_inside = arith.cmpi(arith.CmpIPredicate.ult, place, index(root.shape[axis]))
        branch = scf.IfOp(is_inside, [target.type], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            places = [*at[:axis], place, *at[axis + 1 :]]
            value = self._combined(target, places, tensor.ExtractOp(self.updates, list(at)).result)
            scf.YieldOp([tensor.InsertOp(value, target, places).result])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp([target])
        return branch.results[0]

    def _combined(self, target: ir.Value, places: Sequence[ir.Value], given: ir.Value) -> ir.Value:
        """The element to store for an update."""
        dtype, kind = self.root.dtype, self.root.text("reduction")
        if kind == ScatterKind.NONE and not dtype.is_bool:
            return given
        value = from_memory(dtype, given)
        if kind != ScatterKind.NONE:
            before = from_memory(dtype, tensor.ExtractOp(target, list(places)).result)
            value = self.scalars(Operation("binop", (kind, dtype, dtype), dtype, (dtype, dtype)), [before, value])
        return stored(dtype, value, given.type)
