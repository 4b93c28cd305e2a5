"""Buffers, views into them, inputs, copies, assignments."""

from __future__ import annotations

from ..expr import Dim, mul, sub
from ..nodes import Assign, Buffer, BufferView, Contiguous, Copy, Placeholder
from ..types import TensorType
from .conversion import require_whole_bytes
from .legality import STORED
from .movement import operand
from .scope import Scope, Shape


def storage_shape(scope: Scope, var: int, size: Dim, field: str) -> Shape:
    """The shape of `size` elements of storage: the stated shape, which must have as many elements, else one axis."""
    shape = scope.stated_shape(var)
    if shape is None:
        return (size,)
    scope.require_eq(mul(*shape), size, "the metadata's shape has as many elements as the buffer", field)
    return shape


def buffer(node: Buffer, scope: Scope) -> TensorType:
    if node.dtype not in STORED:
        scope.fail(f"a buffer does not hold {node.dtype}", "dtype")
    scope.require_ge(node.size_in_elements, 0, "the size of a buffer is not negative", "size_in_elements")
    return scope.type(node.dtype, storage_shape(scope, node.out_var, node.size_in_elements, "size_in_elements"))


def buffer_view(node: BufferView, scope: Scope) -> TensorType:
    base = operand(scope, node.buffer_var, "buffer_var")
    if node.dtype not in STORED:
        scope.fail(f"a buffer does not hold {node.dtype}", "dtype")
    require_whole_bytes(scope, base.dtype, node.dtype, "buffer_var", "dtype")
    scope.require_ge(node.size, 0, "the size of a buffer view is not negative", "size")
    scope.require_ge(node.offset, 0, "the offset of a buffer view is not negative", "offset")
    bytes_after = mul(sub(mul(*base.shape), node.offset), base.dtype.itemsize)
    message = (
        "a buffer view ends inside its buffer (size in its own elements, offset in the buffer's, compared in bytes)"
    )
    scope.require_ge(bytes_after, mul(node.size, node.dtype.itemsize), message, "size", "offset")
    return scope.type(node.dtype, storage_shape(scope, node.out_var, node.size, "size"))


def placeholder(node: Placeholder, scope: Scope) -> TensorType:
    if node.out_var not in scope.inputs:
        scope.fail(f"the placeholder of var {node.out_var} is not in input_vars", "out_var")
    if node.dtype not in STORED:
        scope.fail(f"an input does not hold {node.dtype}", "dtype")
    return scope.type(node.dtype, node.shape)


def contiguous(node: Contiguous, scope: Scope) -> TensorType:
    source = scope.types[node.in_var]
    scope.require_dtype(node.dtype, source.dtype)
    return source


def copy(node: Copy, scope: Scope) -> TensorType:
    source = scope.types[node.in_var]
    scope.require_dtype(node.dtype, source.dtype)
    return source


def assign(node: Assign, scope: Scope) -> TensorType:
    target = operand(scope, node.target_var, "target_var")
    scope.require_dtype(node.dtype, target.dtype)
    for number, (source_var, destination_var, span) in enumerate(node.updates):
        field = f"updates/{number}"
        if destination_var != node.target_var:
            scope.fail(f"an update writes var {destination_var}, the target is var {node.target_var}", f"{field}/1")
        source = operand(scope, source_var, f"{field}/0")
        if source.dtype is not target.dtype:
            scope.fail(f"cannot assign {source.dtype} to {target.dtype} (cast first)", f"{field}/0")
        if span is None:
            scope.require_same_shape(source.shape, target.shape, "an update has the shape of its target", f"{field}/0")
            continue
        begin, end = span
        if not 0 <= begin <= end:
            scope.fail(f"the range {begin} .. {end} of an update is not a range", f"{field}/2")
        scope.require_ge(mul(*target.shape), end, "the range of an update ends inside its target", f"{field}/2")
        scope.require_eq(mul(*source.shape), end - begin, "an update has as many elements as its range", f"{field}/0")
    return target


RULES = {
    Buffer: buffer,
    BufferView: buffer_view,
    Placeholder: placeholder,
    Contiguous: contiguous,
    Copy: copy,
    Assign: assign,
}
