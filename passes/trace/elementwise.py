"""Elementwise nodes: one scalar operation on the same element of every operand."""

from __future__ import annotations

from tensorkiln import expr
from tensorkiln.dtypes import DType

from ..loops.index_space import Index
from ..loops.scalar_dag import Node
from ..values import Value
from .tracer import Conditions, Trace, Tracer


def trace_binop(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """Rank-0 operands mix with tensors; operands of a comparison keep their own dtype."""
    left, right = value.operands
    # A shift amount may be uint32 for any dtype of the left operand.
    amount = right.dtype if value.text("op") in ("shl", "shr") else left.dtype
    return tracer.nodes.apply(
        value.dtype,
        "binop",
        (value.text("op"), left.dtype, amount),
        tracer.operand(left, index, conditions),
        tracer.operand(right, index, conditions),
    )


def trace_unary(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """out[i] = op(in[i])"""
    element = tracer.element(value.operands[0], index, conditions)
    return tracer.nodes.apply(value.dtype, "unary", (value.text("op"),), element)


def trace_ternary(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """where and mulacc; both branches of a where are computed"""
    first, second, third = (tracer.operand(operand, index, conditions) for operand in value.operands)
    return tracer.nodes.apply(value.dtype, "ternary", (value.text("op"), first.dtype), first, second, third)


def trace_cast(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """out[i] = in[i] converted"""
    return tracer.nodes.cast(tracer.element(value.operands[0], index, conditions), value.dtype)


def trace_bitcast(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """The same bits; across sizes the last dimension holds the parts of an element, least significant first."""
    source = value.operands[0]
    have, want = source.dtype.itemsize, value.dtype.itemsize
    if have == want:
        element = tracer.element(source, index, conditions)
        return _reinterpret(tracer, value.dtype, element)
    if have > want:
        outer, part = tracer.space.divide(index[-1], have // want)
        whole = _reinterpret(tracer, _UNSIGNED[have], tracer.element(source, (*index[:-1], outer), conditions))
        shift = tracer.nodes.index_value(_UNSIGNED[have], expr.mul(part, 8 * want))
        narrow = tracer.nodes.cast(tracer.nodes.binop("shr", whole, shift), _UNSIGNED[want])
        return _reinterpret(tracer, value.dtype, narrow)
    return _reinterpret(tracer, value.dtype, _join_parts(tracer, value, index, conditions))


def _join_parts(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    source = value.operands[0]
    have, want = source.dtype.itemsize, value.dtype.itemsize
    wide = _UNSIGNED[want]
    joined: Node = tracer.nodes.zero(wide)
    for part in range(want // have):
        position = expr.add(expr.mul(index[-1], want // have), part)
        narrow = _reinterpret(tracer, _UNSIGNED[have], tracer.element(source, (*index[:-1], position), conditions))
        shift = tracer.nodes.constant(wide, 8 * have * part)
        moved = tracer.nodes.binop("shl", tracer.nodes.cast(narrow, wide), shift)
        joined = tracer.nodes.binop("or", joined, moved)
    return joined


def _reinterpret(tracer: Tracer, dtype: DType, element: Node) -> Node:
    if element.dtype == dtype:
        return element
    # Narrow types below 8 bits also clear the upper bits of the byte, which a bitcast would not.
    op = "low_bits" if any(kind.is_narrow and kind.bits < 8 for kind in (dtype, element.dtype)) else "bitcast"
    return tracer.nodes.apply(dtype, op, (element.dtype,), element)


_UNSIGNED = {1: DType.UINT8, 2: DType.UINT16, 4: DType.UINT32, 8: DType.UINT64}


def trace_threefry(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    """64-bit counters and keys, or int32 pairs on the last dimension with the low word first"""
    counter, key = value.operands
    if value.dtype.bits == 64:
        words = [tracer.operand(operand, index, conditions) for operand in (counter, key)]
        return tracer.nodes.apply(value.dtype, "threefry", (), *words)
    joined = [_join_words(tracer, operand, index, conditions) for operand in (counter, key)]
    drawn = tracer.nodes.apply(DType.UINT64, "threefry", (), *joined)
    shift = tracer.nodes.index_value(DType.UINT64, expr.mul(index[-1], 32))
    word = tracer.nodes.cast(tracer.nodes.binop("shr", drawn, shift), DType.UINT32)
    return _reinterpret(tracer, value.dtype, word)


def _join_words(tracer: Tracer, value: Value, index: Index, conditions: Conditions) -> Node:
    words = (tracer.element(value, (*index[:-1], word), conditions) for word in (0, 1))
    low, high = (tracer.nodes.cast(_reinterpret(tracer, DType.UINT32, word), DType.UINT64) for word in words)
    moved = tracer.nodes.binop("shl", high, tracer.nodes.constant(DType.UINT64, 32))
    return tracer.nodes.binop("or", moved, low)


ELEMENTWISE: dict[str, Trace] = {
    "binop": trace_binop,
    "unary": trace_unary,
    "ternary": trace_ternary,
    "cast": trace_cast,
    "bitcast": trace_bitcast,
    "threefry": trace_threefry,
}
