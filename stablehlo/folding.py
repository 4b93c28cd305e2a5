"""Constant folding of operations on known values: trip counts, shapes, indices.

Integers wrap. Values that depend on symbols are folded as dimension expressions, which do not wrap: if by the bounds of
the symbols a result might wrap, or a comparison is undecided, the graph computes it. Float arithmetic is not folded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from tensorkiln.expr import Dim, add, idiv, maximum, minimum, mod, mul, neg, sub

from .op import Op
from .value import Host, Known, settled

MAX_ELEMENTS: Final = 1 << 12
"""The most elements of a result that is folded element by element."""

_DECIDING: Final = {"stablehlo.and": False, "stablehlo.or": True}
"""The value of a bool operand that determines the result alone."""

Fold: TypeAlias = "Callable[[Op], Known | None]"
Scalar: TypeAlias = "Callable[..., Any]"


def folded(op: Op) -> list[Known] | None:
    """The results of an operation on known values; None if the graph must compute them."""
    if op.name in _DECIDING and (decided := _decided(op, _DECIDING[op.name])) is not None:
        return [decided]
    if op.name not in FOLDS or not op.operands or not all(isinstance(value, Known) for value in op.operands):
        return None
    found = FOLDS[op.name](op)
    return None if found is None else [found]


def _decided(op: Op, deciding: bool) -> Known | None:
    """The bool operand that determines the result alone, and equals it; None without one."""
    known = [value for value in op.operands if isinstance(value, Known) and value.dtype.is_bool]
    return next((value for value in known if value.splat is not None and bool(value.splat) is deciding), None)


def _operands(op: Op) -> list[Known]:
    return [value for value in op.operands if isinstance(value, Known)]


def _elementwise(scalar: Scalar) -> Fold:
    """Fold an operation on Python integers or dims, element by element; `scalar` returns None if undecided."""

    def fold(op: Op) -> Known | None:
        operands, dtype = _operands(op), op.result().dtype
        integral = all(not value.dtype.is_float for value in operands) and not dtype.is_float
        shape = np.broadcast_shapes(*(value.shape for value in operands))
        if not integral or int(np.prod(shape)) > MAX_ELEMENTS:
            return None
        lists = [np.broadcast_to(value.array, shape).reshape(-1).tolist() for value in operands]
        values = [scalar(op, *each) for each in zip(*lists, strict=True)]
        if any(value is None or not (isinstance(value, int) or op.holds(value, dtype)) for value in values):
            return None
        result = np.empty(len(values), object)
        result[:] = values
        result = result.reshape(shape)
        return Known(result.astype(bool), dtype) if dtype.is_bool else settled(result, dtype)

    return fold


def _plain(function: Callable[..., Any]) -> Scalar:
    return lambda op, *values: function(*values)


def _sum(left: Any, right: Any) -> Any:
    return left or right if isinstance(left, bool) else add(left, right)


def _product(left: Any, right: Any) -> Any:
    return left and right if isinstance(left, bool) else mul(left, right)


def _greatest(left: Any, right: Any) -> Any:
    return left or right if isinstance(left, bool) else maximum(left, right)


def _least(left: Any, right: Any) -> Any:
    return left and right if isinstance(left, bool) else minimum(left, right)


def _quotient(op: Op, left: Dim, right: Dim) -> Dim | None:
    low, high = op.builder.bounds(right)
    return None if low <= 0 <= high else idiv(left, right)


def _remainder(op: Op, left: Dim, right: Dim) -> Dim | None:
    low, high = op.builder.bounds(right)
    return None if low <= 0 <= high else mod(left, right)


def _compared(op: Op, left: Any, right: Any) -> bool | None:
    low, high = op.builder.bounds(sub(int(left) if isinstance(left, bool) else left, right))
    direction = op.raw.attributes["comparison_direction"]
    word = str(direction).rpartition(" ")[2].rstrip(">")
    never, always = _DECIDED[word](low, high)
    return True if always else False if never else None


_DECIDED: Final[dict[str, Callable[[int, int], tuple[bool, bool]]]] = {
    "EQ": lambda low, high: (low > 0 or high < 0, low == high == 0),
    "NE": lambda low, high: (low == high == 0, low > 0 or high < 0),
    "LT": lambda low, high: (low >= 0, high < 0),
    "LE": lambda low, high: (low > 0, high <= 0),
    "GT": lambda low, high: (high <= 0, low > 0),
    "GE": lambda low, high: (high < 0, low >= 0),
}
"""Whether a comparison never holds and whether it always holds, by the bounds of left - right."""


def _sign(op: Op, value: Dim) -> int | None:
    low, high = op.builder.bounds(value)
    if low > 0 or high < 0 or low == high == 0:
        return (low > 0) - (high < 0)
    return None


def _absolute(op: Op, value: Dim) -> Dim | None:
    low, high = op.builder.bounds(value)
    if low >= 0:
        return value
    return neg(value) if high <= 0 else None


def _bitwise(function: Callable[[int, int], int]) -> Scalar:
    return lambda op, left, right: function(left, right) if isinstance(left, int) and isinstance(right, int) else None


def _not(op: Op, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return ~value if isinstance(value, int) else None


def _convert(op: Op) -> Known | None:
    (value,) = _operands(op)
    dtype = op.result().dtype
    if value.is_symbolic:
        holds = dtype.is_integer and all(op.holds(dim, dtype) for dim in value.array.reshape(-1).tolist())
        return Known(value.array, dtype) if holds else None
    if value.dtype.is_float:
        return None
    if dtype.is_float:
        # NumPy may round twice to a half type; the graph rounds once.
        return None if dtype.is_half else Known(_same_view(value.array, lambda a: a.astype(dtype.numpy)), dtype)
    return Known(_same_view(value.array, lambda a: a.astype(dtype.numpy)), dtype)


def _same_view(array: Host, change: Callable[[Host], Host]) -> Host:
    """Apply `change`; for a repeated element only once."""
    if array.size > 1 and not any(array.strides):
        return np.broadcast_to(change(array[(slice(0, 1),) * array.ndim]), array.shape)
    return change(array)


def _select(op: Op) -> Known | None:
    condition, left, right = _operands(op)
    shape = np.broadcast_shapes(condition.shape, left.shape)
    if condition.array.size == 1:
        return Known((left if condition.array.item() else right).array, left.dtype)
    if int(np.prod(shape)) > MAX_ELEMENTS:
        return None
    return settled(np.where(condition.array, left.array, right.array), left.dtype)


def _clamped(op: Op, low: Dim, value: Dim, high: Dim) -> Dim:
    return minimum(maximum(value, low), high)


def _reshape(op: Op) -> Known | None:
    (value,) = _operands(op)
    shape = op.static_shape()
    splat = value.splat
    if splat is not None and value.array.size > 1:
        return Known(np.broadcast_to(np.asarray(splat, value.array.dtype), shape), value.dtype)
    return Known(value.array.reshape(shape), value.dtype)


def _broadcast(op: Op) -> Known | None:
    (value,) = _operands(op)
    shape, axes = op.static_shape(), op.integers("broadcast_dimensions")
    inner = [1] * len(shape)
    for own, axis in enumerate(axes):
        inner[axis] = value.shape[own]
    order = list(np.argsort(axes)) if axes else []
    result = np.broadcast_to(value.array.transpose(order).reshape(inner), shape)
    if value.array.size > 1 and result.size > MAX_ELEMENTS:
        return None
    return Known(result, value.dtype)


def _transpose(op: Op) -> Known | None:
    (value,) = _operands(op)
    return Known(value.array.transpose(op.integers("permutation")), value.dtype)


def _slice(op: Op) -> Known | None:
    (value,) = _operands(op)
    names = ("start_indices", "limit_indices", "strides")
    parts = tuple(slice(*each) for each in zip(*(op.integers(name) for name in names), strict=True))
    return settled(value.array[parts], value.dtype)


def _concatenate(op: Op) -> Known | None:
    values = _operands(op)
    if sum(value.array.size for value in values) > MAX_ELEMENTS:
        return None
    return settled(np.concatenate([value.array for value in values], op.integer("dimension")), values[0].dtype)


FOLDS: Final[dict[str, Fold]] = {
    "stablehlo.abs": _elementwise(_absolute),
    "stablehlo.add": _elementwise(_plain(_sum)),
    "stablehlo.and": _elementwise(_bitwise(lambda a, b: a & b)),
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.clamp": _elementwise(_clamped),
    "stablehlo.compare": _elementwise(_compared),
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convert": _convert,
    "stablehlo.divide": _elementwise(_quotient),
    "stablehlo.maximum": _elementwise(_plain(_greatest)),
    "stablehlo.minimum": _elementwise(_plain(_least)),
    "stablehlo.multiply": _elementwise(_plain(_product)),
    "stablehlo.negate": _elementwise(_plain(neg)),
    "stablehlo.not": _elementwise(_not),
    "stablehlo.or": _elementwise(_bitwise(lambda a, b: a | b)),
    "stablehlo.remainder": _elementwise(_remainder),
    "stablehlo.reshape": _reshape,
    "stablehlo.select": _select,
    "stablehlo.sign": _elementwise(_sign),
    "stablehlo.slice": _slice,
    "stablehlo.subtract": _elementwise(_plain(sub)),
    "stablehlo.transpose": _transpose,
    "stablehlo.xor": _elementwise(_bitwise(lambda a, b: a ^ b)),
}
"""The folds, for operations whose operands are all known."""
