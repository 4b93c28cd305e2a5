"""Write a scatter as loops over tensors: zeros, then the updates in order, so that the last one wins."""

from __future__ import annotations

from collections.abc import Sequence

from dialect.mlir import arith, ir, scf, tensor
from dialect.named_ops import fill

from ..scalar.registers import from_memory, zero
from ..values import Value
from .node_writer import as_index
from .write_element import stored
from .write_index import IndexWriter


def write_scatter(root: Value, arguments: Sequence[ir.Value], empty: ir.Value, index: IndexWriter) -> ir.Value:
    """`out[..., indices[i], ...] = updates[i]` for every i in order, if the index is within `root`; zero elsewhere.

    `arguments` are the indices and the updates, `empty` is a tensor of the result's shape.
    """
    element = ir.RankedTensorType(empty.type).element_type
    cleared = fill(stored(root.dtype, zero(root.dtype), element), empty)
    return _over(root, arguments, (), cleared, index)


def _over(
    root: Value, arguments: Sequence[ir.Value], at: tuple[ir.Value, ...], target: ir.Value, index: IndexWriter
) -> ir.Value:
    indices = root.operands[0]
    if len(at) == len(indices.shape):
        return _update(root, arguments, at, target, index)
    loop = scf.ForOp(index(0), index(indices.shape[len(at)]), index(1), [target])
    with ir.InsertionPoint(loop.body):
        inner = index.inside()
        scf.YieldOp([_over(root, arguments, (*at, loop.induction_variable), loop.inner_iter_args[0], inner)])
    return loop.results[0]


def _update(
    root: Value, arguments: Sequence[ir.Value], at: tuple[ir.Value, ...], target: ir.Value, index: IndexWriter
) -> ir.Value:
    axis = root.int("axis")
    indices, updates = arguments
    place = as_index(root.operands[0].dtype, tensor.ExtractOp(indices, list(at)).result)
    # A negative index is a huge unsigned one.
    branch = scf.IfOp(arith.cmpi(arith.CmpIPredicate.ult, place, index(root.shape[axis])), [target.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        value = tensor.ExtractOp(updates, list(at)).result
        if root.dtype.is_bool:
            # Any byte but 0 is true; 1 is stored.
            value = stored(root.dtype, from_memory(root.dtype, value), value.type)
        scf.YieldOp([tensor.InsertOp(value, target, [*at[:axis], place, *at[axis + 1 :]]).result])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([target])
    return branch.results[0]
