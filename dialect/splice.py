"""Write through a buffer view: the buffer's value with the view's bytes replaced, in ops of the dialect."""

from __future__ import annotations

from dataclasses import replace

from tensorkiln.dtypes import DType
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.expr import Dim, add, mul, product
from tensorkiln.nodes import BufferView
from tensorkiln.types import TensorType

from .conversion import BitcastOp
from .locations import node_pointer
from .mlir import ir
from .movement import CatOp, ReshapeOp, ShrinkOp
from .types import type_of
from .writer import Writer


def splice(writer: Writer, base: ir.Value, view: ir.Value, node: BufferView, index: int) -> ir.Value:
    """`base` with `view`, the new value of its view `node` (with node index `index`), spliced in.

    Elements are spliced if both have one dtype, else bytes. Raises UnsupportedGraphError for a bool and another dtype:
    a byte of a bool is 0 or 1 as a value, so the surrounding bytes would change.
    """
    whole, part = type_of(base), type_of(view)
    offset, size = node.offset, node.size
    if whole.dtype is not part.dtype:
        if DType.BOOL in (whole.dtype, part.dtype):
            raise UnsupportedGraphError(
                f"an assignment through a {part.dtype} view of a {whole.dtype} buffer is not supported; "
                "give the view the dtype of the buffer",
                pointers=[node_pointer(writer.node), node_pointer(index)],
            )
        offset, size = mul(offset, whole.dtype.itemsize), mul(size, part.dtype.itemsize)
    element = whole.dtype if whole.dtype is part.dtype else DType.UINT8
    old = _flat(writer, base, element)
    count = type_of(old).shape[0]
    before = _slice(writer, old, 0, offset)
    after = _slice(writer, old, add(offset, size), count)
    parts = (before, _flat(writer, view, element), after)
    spliced = writer.write(CatOp, parts, TensorType(element, (count,)), {"axis": 0})
    flat = TensorType(whole.dtype, (product(whole.shape),))
    typed = spliced if element is whole.dtype else writer.write(BitcastOp, (spliced,), flat)
    return typed if whole.rank == 1 else writer.write(ReshapeOp, (typed,), whole)


def _flat(writer: Writer, value: ir.Value, element: DType) -> ir.Value:
    """The elements of a value on one axis, or its bytes if `element` is not its dtype."""
    tensor = type_of(value)
    count = product(tensor.shape)
    if tensor.rank != 1:
        value = writer.write(ReshapeOp, (value,), TensorType(tensor.dtype, (count,)))
    if tensor.dtype is element:
        return value
    return writer.write(BitcastOp, (value,), TensorType(element, (mul(count, tensor.dtype.itemsize),)))


def _slice(writer: Writer, flat: ir.Value, begin: Dim, end: Dim) -> ir.Value:
    result = replace(type_of(flat), shape=(add(end, mul(begin, -1)),))
    return writer.write(ShrinkOp, (flat,), result, {"limits": ((begin, end),)})
