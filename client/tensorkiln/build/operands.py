"""Checks of operands: equal dtypes, one builder; Python scalars adopt the tensor's dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..expr import Expr
from ..nearest import kind_of
from .mistakes import OperandError

if TYPE_CHECKING:
    from .tensor import Tensor

Scalar: TypeAlias = "bool | int | float | np.generic"
Operand: TypeAlias = "Tensor | Scalar"


def require_tensor(value: object, operation: str) -> None:
    """OperandError for a value that is not a tensor of a graph, such as an array."""
    from .tensor import Tensor

    if not isinstance(value, Tensor):
        raise OperandError(f"{operation} takes a tensor of a graph, not {kind_of(value)}{_remedy(value)}")


def _remedy(value: object) -> str:
    if isinstance(value, Expr):
        return f": dim_value(builder, {value}, dtype) makes a tensor of a dimension"
    if isinstance(value, np.ndarray):
        return ": make it an input (builder.input) or a constant (builder.constant)"
    if isinstance(value, bool | int | float | list | tuple | np.generic):
        return ": make it a constant (builder.constant)"
    return ""


def adopt(value: Operand, like: Tensor) -> Tensor:
    """`value` as a tensor of `like`'s dtype; a NumPy scalar must have that dtype already, a Python scalar must fit it.

    InvalidGraphError otherwise; OperandError for a value that cannot be an operand, such as an array.
    """
    from .tensor import Tensor

    require_tensor(like, "an operation of two operands")
    if isinstance(value, Tensor):
        like.builder.own(value)
        if value.dtype is not like.dtype:
            raise like.builder.error(
                f"the operands are {like.dtype} and {value.dtype}; there is no implicit promotion: cast one of them"
            )
        return value
    if isinstance(value, np.generic):
        if value.dtype != like.dtype.numpy:
            raise like.builder.error(
                f"a NumPy {value.dtype} scalar cannot be combined with a {like.dtype} tensor; use a Python number"
            )
    elif not isinstance(value, bool | int | float):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are users
        raise OperandError(
            f"{kind_of(value)} cannot be an operand of a tensor{_remedy(value) or ': give a tensor or a number'}"
        )
    return like.builder.scalar(value, like.dtype)


def alike(a: Operand, b: Operand) -> tuple[Tensor, Tensor]:
    """Both operands as tensors of one dtype; at least one must be a tensor."""
    from .tensor import Tensor

    if isinstance(a, Tensor):
        return a, adopt(b, a)
    if isinstance(b, Tensor):
        return adopt(a, b), b
    raise OperandError("neither operand is a tensor of a graph: make one of them an input, or a builder.constant")


def need(x: Tensor, operation: str, *, floats: bool = False, integers: bool = False, bools: bool = False) -> None:
    """InvalidGraphError unless `x` is of one of the kinds of dtype that `operation` is defined for."""
    require_tensor(x, operation)
    allowed = (floats and x.dtype.is_float) or (integers and x.dtype.is_integer) or (bools and x.dtype.is_bool)
    if not allowed:
        kinds = [name for name, given in (("floats", floats), ("integers", integers), ("bool", bools)) if given]
        raise x.builder.error(
            f"{operation} is defined for {' and '.join(kinds)}, not for {x.dtype}; cast the tensor first"
        )


def axis_of(x: Tensor, axis: int) -> int:
    """`axis` as a non-negative number. InvalidGraphError when the tensor has no such axis."""
    require_tensor(x, "a function with an axis")
    rank = len(x.shape)
    given: Any = axis
    if not isinstance(given, int | np.integer):
        raise x.builder.error(f"an axis is an integer, not {type(given).__name__}")
    if not -rank <= axis < rank:
        raise x.builder.error(f"axis {axis} is out of range for a tensor of rank {rank}")
    return int(axis) % rank


def axes_of(x: Tensor, axes: int | Sequence[int] | None) -> tuple[int, ...]:
    """Non-negative axes, sorted; None means all. InvalidGraphError for an axis out of range or given twice."""
    require_tensor(x, "a function with axes")
    if axes is None:
        return tuple(range(len(x.shape)))
    given: list[Any] = list(axes) if isinstance(axes, Sequence) and not isinstance(axes, str) else [axes]
    found = tuple(sorted(axis_of(x, axis) for axis in given))
    if len(set(found)) != len(found):
        raise x.builder.error(f"the axes {tuple(given)} name one axis twice")
    return found
