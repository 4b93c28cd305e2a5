"""NumPy functions on tensors: `np.add(x, y)` adds the same nodes as `x + y`, if the builder has the function.

Dtypes follow the builder, which does not promote: `np.sum` of int32 is int32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from . import (
    arithmetic,
    bits,
    comparison,
    contraction,
    division,
    joining,
    movement,
    reduction,
    rounding,
    search,
    selection,
    transcendental,
)
from .activation import tanh
from .mistakes import OperandError
from .operands import need

if TYPE_CHECKING:
    from .tensor import Tensor

Written = Callable[..., Any]


def _logical(name: str, written: Written) -> Written:
    def of_bools(*operands: Any) -> Tensor:
        for operand in operands:
            if not isinstance(operand, bool):
                need(operand, name, bools=True)
        return written(*operands)

    return of_bools


def _square(x: Tensor) -> Tensor:
    return arithmetic.mul(x, x)


UFUNCS: Final[Mapping[np.ufunc, Written]] = {
    np.add: arithmetic.add,
    np.subtract: arithmetic.sub,
    np.multiply: arithmetic.mul,
    np.divide: arithmetic.divide,
    np.floor_divide: division.floor_divide,
    np.remainder: division.floor_remainder,
    np.fmod: division.truncating_remainder,
    np.power: arithmetic.power,
    np.maximum: arithmetic.maximum,
    np.minimum: arithmetic.minimum,
    np.negative: arithmetic.negate,
    np.absolute: arithmetic.absolute,
    np.square: _square,
    np.sign: rounding.sign,
    np.floor: rounding.floor,
    np.ceil: rounding.ceil,
    np.trunc: rounding.trunc,
    np.rint: rounding.rint,
    np.sqrt: transcendental.sqrt,
    np.reciprocal: transcendental.reciprocal,
    np.exp: transcendental.exp,
    np.exp2: transcendental.exp2,
    np.expm1: transcendental.expm1,
    np.log: transcendental.log,
    np.log2: transcendental.log2,
    np.log10: transcendental.log10,
    np.log1p: transcendental.log1p,
    np.sin: transcendental.sin,
    np.cos: transcendental.cos,
    np.tan: transcendental.tan,
    np.tanh: tanh,
    np.less: comparison.less,
    np.less_equal: comparison.less_equal,
    np.greater: comparison.greater,
    np.greater_equal: comparison.greater_equal,
    np.equal: comparison.equal,
    np.not_equal: comparison.not_equal,
    np.isnan: comparison.is_nan,
    np.bitwise_and: bits.bit_and,
    np.bitwise_or: bits.bit_or,
    np.bitwise_xor: bits.bit_xor,
    np.invert: bits.invert,
    np.left_shift: bits.shift_left,
    np.right_shift: bits.shift_right,
    np.logical_and: _logical("logical_and", bits.bit_and),
    np.logical_or: _logical("logical_or", bits.bit_or),
    np.logical_xor: _logical("logical_xor", bits.bit_xor),
    np.logical_not: _logical("logical_not", bits.invert),
    np.matmul: contraction.matmul,
}


def _reduced(reduce: Written) -> Written:
    """A reduction with NumPy's order of arguments; NumPy's third argument is only taken by name."""

    def written(a: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return reduce(a, axis, keepdims)

    return written


def _accumulated(reduce: Written) -> Written:
    def written(a: Tensor, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
        return reduce(a, axis, keepdims, dtype)

    return written


def _broadcast_to(array: Tensor, shape: Any) -> Tensor:
    given = shape if isinstance(shape, Sequence) else [shape]
    if any(isinstance(extent, int) and extent < 0 for extent in given):
        raise array.builder.error("np.broadcast_to takes no negative extents; x.expand(-1, …) keeps one")
    return movement.expand(array, shape)


def _stack(arrays: Sequence[Tensor], axis: int = 0) -> Tensor:
    return joining.stack(arrays, axis)


def _squeeze(a: Tensor, axis: Any = None) -> Tensor:
    return movement.squeeze(a, axis)


def _swapaxes(a: Tensor, axis1: int, axis2: int) -> Tensor:
    return movement.transpose(a, axis1, axis2)


def _concatenate(arrays: Sequence[Tensor], axis: int | None = 0) -> Tensor:
    return joining.cat([movement.flatten(each) for each in arrays] if axis is None else arrays, axis or 0)


def _where(condition: Tensor, x: Any, y: Any) -> Tensor:
    return selection.where(condition, x, y)


def _clip(a: Tensor, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Tensor:
    return selection.clip(a, min if a_min is None else a_min, max if a_max is None else a_max)


def _transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    return movement.permute(a, list(reversed(range(a.rank))) if axes is None else axes)


def _reshape(a: Tensor, /, shape: int | Sequence[int]) -> Tensor:
    return movement.reshape(a, shape)


def _var(a: Tensor, axis: Any = None, *, ddof: int = 0, correction: int = 0, keepdims: bool = False) -> Tensor:
    return reduction.var(a, axis, keepdims, ddof or correction)


def _std(a: Tensor, axis: Any = None, *, ddof: int = 0, correction: int = 0, keepdims: bool = False) -> Tensor:
    return reduction.std(a, axis, keepdims, ddof or correction)


def _round(a: Tensor, decimals: int = 0) -> Tensor:
    if decimals:
        raise a.builder.error(
            f"np.round to {decimals} decimals is not a function of the builder; scale, rint, and scale"
        )
    return rounding.rint(a)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    if max(len(np.shape(a)), len(np.shape(b))) > 2:
        raise OperandError("np.dot of tensors takes ranks 1 and 2; write x @ y for more")
    return contraction.matmul(a, b)


def _shape(a: Tensor) -> Any:
    return a.shape


def _ndim(a: Tensor) -> int:
    return a.rank


FUNCTIONS: Final[Mapping[Callable[..., Any], Written]] = {
    np.sum: _accumulated(reduction.sum_),
    np.prod: _accumulated(reduction.prod),
    np.max: _reduced(reduction.max_),
    np.min: _reduced(reduction.min_),
    np.amax: _reduced(reduction.max_),
    np.amin: _reduced(reduction.min_),
    np.any: _reduced(reduction.any_),
    np.all: _reduced(reduction.all_),
    np.mean: _reduced(reduction.mean),
    np.var: _var,
    np.std: _std,
    np.argmax: _reduced(search.argmax),
    np.argmin: _reduced(search.argmin),
    np.reshape: _reshape,
    np.transpose: _transpose,
    np.swapaxes: _swapaxes,
    np.moveaxis: movement.moveaxis,
    np.expand_dims: movement.unsqueeze,
    np.squeeze: _squeeze,
    np.broadcast_to: _broadcast_to,
    np.flip: movement.flip,
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.where: _where,
    np.clip: _clip,
    np.round: _round,
    np.einsum: contraction.einsum,
    np.dot: _dot,
    np.shape: _shape,
    np.ndim: _ndim,
}


def write_ufunc(ufunc: np.ufunc, method: str, operands: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """The result of `__array_ufunc__`. OperandError for a function or an option that the builder lacks."""
    written = UFUNCS.get(ufunc)
    if written is None or method != "__call__":
        called = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise OperandError(
            f"np.{called} is not a function of the builder; compose it from functions of tensorkiln.build"
        )
    if options:
        raise OperandError(f"np.{ufunc.__name__} of a tensor takes no {', '.join(sorted(options))}")
    return written(*operands)


def write_function(function: Callable[..., Any], arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """The result of `__array_function__`. OperandError for a function or an option that the builder lacks."""
    name = _public_name(function)
    written = FUNCTIONS.get(function)
    if written is None:
        raise OperandError(f"{name} is not a function of the builder; compose it from functions of tensorkiln.build")
    try:
        signature(written).bind(*arguments, **options)
    except TypeError as error:
        raise OperandError(f"{name} of a tensor: {error}") from None
    return written(*arguments, **options)


def _public_name(function: Callable[..., Any]) -> str:
    """The public name of a NumPy function: `np.sum`, `np.linalg.inv`."""
    package, *inner = function.__module__.split(".")
    return ".".join(["np" if package == "numpy" else package, *inner, function.__name__])
