"""What is computed from a tensor element by element: biases, activations, residuals, conditions, conversions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from tensorkiln import build as kiln
from tensorkiln.build import Tensor, cast, where
from tensorkiln.dtypes import DType

from .composer import Composer

Step = Callable[[Composer, Tensor, "list[Tensor]"], Tensor]
"""From a tensor and the earlier ones of its shape to another one of its shape."""

LENGTHS = (1, 2, 3, 1, 2, 3, 4, 1, 2, 5, 3, 2, 8, 1, 12, 30)

Binary = Callable[[Tensor, Tensor], Tensor]


def extended(composer: Composer, x: Tensor, lengths: Sequence[int] = LENGTHS) -> list[Tensor]:
    """`x`, and what so many steps make of it, all of its shape."""
    pool = [x]
    for _ in range(composer.pick(lengths)):
        pool.append(step(composer, pool[-1], pool))
    return pool


def step(composer: Composer, x: Tensor, pool: list[Tensor]) -> Tensor:
    """One step behind `x`."""
    if x.dtype.is_bool:
        table = _OF_BOOLS
    elif x.dtype.is_float:
        table = composer.pick([_LINEAR, _ACTIVATIONS, _MIXED])
    else:
        table = composer.pick([_LINEAR, _OF_INTEGERS, _MIXED])
    return composer.pick(table)(composer, x, pool)


def _alone(function: Callable[[Tensor], Tensor]) -> Step:
    return lambda _composer, x, _pool: function(x)


def _bias(composer: Composer, x: Tensor, _pool: list[Tensor]) -> Tensor:
    return x + composer.input(x.dtype, x.shape[-1:])


def _channel_bias(composer: Composer, x: Tensor, _pool: list[Tensor]) -> Tensor:
    axis = composer.integer(0, len(x.shape) - 1) if x.shape else 0
    sizes = [dim if place == axis else 1 for place, dim in enumerate(x.shape)]
    return composer.pick(_SCALES)(x, composer.input(x.dtype, sizes))


def _residual(composer: Composer, x: Tensor, _pool: list[Tensor]) -> Tensor:
    return composer.pick(_RESIDUALS)(x, composer.input(x.dtype, x.shape))


def _scalar(composer: Composer, x: Tensor, _pool: list[Tensor]) -> Tensor:
    number = composer.pick([2, 1, 3, 5])
    if composer.flag():
        return x * number
    return x + number if composer.flag() else number - x


def _like(composer: Composer, x: Tensor, pool: list[Tensor]) -> Tensor:
    """An earlier tensor in the dtype of `x`."""
    return cast(composer.pick(pool), x.dtype)


def _earlier(composer: Composer, x: Tensor, pool: list[Tensor]) -> Tensor:
    return composer.pick(_RESIDUALS)(x, _like(composer, x, pool))


def _compared(composer: Composer, x: Tensor, pool: list[Tensor]) -> Tensor:
    other = _like(composer, x, pool) if composer.flag() else composer.input(x.dtype, x.shape[-1:])
    return composer.pick(_COMPARISONS)(x, other)


def _chosen(composer: Composer, x: Tensor, pool: list[Tensor]) -> Tensor:
    condition = composer.pick([y for y in pool if y.dtype.is_bool] or [_like(composer, x, pool) < 1])
    other = _like(composer, x, pool) if composer.flag() else 0
    return where(condition, x, other)


def _masked(composer: Composer, x: Tensor, _pool: list[Tensor]) -> Tensor:
    """By a mask that is given, which broadcasts along an axis."""
    mask = composer.input(DType.BOOL, [1 if composer.flag() else dim for dim in x.shape])
    return where(mask, x, -1 if not x.dtype.is_unsigned else 1)


def _converted(composer: Composer, x: Tensor, _pool: list[Tensor]) -> Tensor:
    return cast(x, composer.pick(_TARGETS))


def _there_and_back(composer: Composer, x: Tensor, _pool: list[Tensor]) -> Tensor:
    return cast(cast(x, composer.pick([DType.FLOAT16, DType.BFLOAT16, DType.INT8, DType.INT32])), x.dtype)


def _multiply_add(composer: Composer, x: Tensor, pool: list[Tensor]) -> Tensor:
    return kiln.multiply_add(x, composer.input(x.dtype, x.shape[-1:]), _like(composer, x, pool))


def _taken_by_position(composer: Composer, x: Tensor, _pool: list[Tensor]) -> Tensor:
    """Multiplied by its position along the last axis, as a rotary embedding or an alibi bias is."""
    if not x.shape or x.dtype.is_bool:
        return x
    return x + cast(kiln.arange(composer.b, x.shape[-1]), x.dtype)


def _quotient(composer: Composer, x: Tensor, pool: list[Tensor]) -> Tensor:
    divisor = kiln.absolute(_like(composer, x, pool)) + 1
    return x / divisor if x.dtype.is_float else x // divisor


def _remainder(composer: Composer, x: Tensor, _pool: list[Tensor]) -> Tensor:
    return kiln.truncating_remainder(x, composer.pick([3, 7]))


def _moved(composer: Composer, x: Tensor, _pool: list[Tensor]) -> Tensor:
    """Reversed along an axis, or turned and turned back: the same shape, another place."""
    if not x.shape:
        return x
    if composer.flag() or len(x.shape) < 2:
        return kiln.flip(x, composer.integer(0, len(x.shape) - 1))
    return kiln.reshape(kiln.transpose(x), x.shape)


def _shifted(_composer: Composer, x: Tensor, _pool: list[Tensor]) -> Tensor:
    """By one place along the last axis, zeros coming in."""
    if not x.shape:
        return x
    widths = [(0, 0)] * (len(x.shape) - 1) + [(1, 0)]
    return kiln.shrink(kiln.pad(x, widths), [(0, dim) for dim in x.shape])


def _mish(x: Tensor) -> Tensor:
    return x * kiln.tanh(kiln.softplus(x))


def _hard_swish(x: Tensor) -> Tensor:
    return x * kiln.clip(x + 3, 0, 6) * (1 / 6)


def _bounded_exp(x: Tensor) -> Tensor:
    return kiln.exp(kiln.minimum(x, 4))


_RESIDUALS: Sequence[Binary] = (operator.add, operator.sub, operator.mul, kiln.maximum, kiln.minimum)
_SCALES: Sequence[Binary] = (operator.mul, operator.sub, kiln.maximum)
_COMPARISONS: Sequence[Binary] = (kiln.less, operator.ge, kiln.not_equal, kiln.equal)

_LINEAR: Sequence[Step] = (_bias, _residual, _scalar, _earlier, _channel_bias, _multiply_add)
# From those of one node to those of fifty: hypothesis prefers the first.
_ACTIVATIONS: Sequence[Step] = tuple(
    map(
        _alone,
        (
            kiln.relu,
            lambda x: -x,
            lambda x: x * x,
            kiln.absolute,
            lambda x: kiln.clip(x, -1, 1),
            kiln.sin,
            _bounded_exp,
            lambda x: kiln.sqrt(kiln.absolute(x)),
            lambda x: kiln.reciprocal(kiln.absolute(x) + 1),
            lambda x: kiln.rsqrt(kiln.absolute(x) + 1),
            lambda x: kiln.log(kiln.absolute(x) + 1),
            kiln.leaky_relu,
            lambda x: kiln.power(kiln.absolute(x) + 1, 1.5),
            kiln.cos,
            kiln.sign,
            kiln.sigmoid,
            kiln.silu,
            _hard_swish,
            kiln.trunc,
            kiln.floor,
            kiln.ceil,
            kiln.rint,
            lambda x: kiln.log1p(kiln.absolute(x)),
            lambda x: kiln.expm1(kiln.minimum(x, 4)),
            kiln.softplus,
            kiln.elu,
            kiln.tanh,
            lambda x: kiln.gelu(x, "tanh"),
            kiln.erf,
            kiln.gelu,
            kiln.gelu,
            _mish,
            _mish,
        ),
    )
)
_MIXED: Sequence[Step] = (
    _compared,
    _chosen,
    _masked,
    _converted,
    _there_and_back,
    _quotient,
    _moved,
    _shifted,
    _taken_by_position,
)
_OF_INTEGERS: Sequence[Step] = (
    _alone(kiln.relu),
    _alone(kiln.absolute),
    _alone(kiln.sign),
    _alone(lambda x: ~x),
    _alone(lambda x: x & 7),
    _alone(lambda x: x ^ 5),
    _alone(lambda x: x | 1),
    _alone(lambda x: x << 1),
    _alone(lambda x: x >> 1),
    _remainder,
    _alone(lambda x: kiln.clip(x, 0, 9)),
)
_OF_BOOLS: Sequence[Step] = (
    _converted,
    _alone(lambda x: ~x),
    lambda composer, x, pool: x & (cast(composer.pick(pool), DType.FLOAT32) < 1),
    lambda composer, x, _pool: where(x, composer.input(DType.FLOAT32, x.shape), 1.0),
    _moved,
)
_TARGETS = (
    DType.FLOAT32,
    DType.FLOAT64,
    DType.FLOAT16,
    DType.BFLOAT16,
    DType.INT32,
    DType.INT8,
    DType.INT64,
    DType.UINT8,
)
