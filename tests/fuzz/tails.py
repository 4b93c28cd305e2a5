"""What follows rows of maps: a reduction, a normalisation, a search, a gather, a second layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorkiln import build as kiln
from tensorkiln.build import Tensor, cast
from tensorkiln.dtypes import DType
from tensorkiln.nodes import ScatterKind

from .composer import Composer
from .epilogues import extended
from .products import product_with

Tail = Callable[[Composer, Tensor], Sequence[Tensor]]


def tail(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Nothing in half of the graphs, else the tensors of one tail, the last one last."""
    if composer.flag() or not x.shape:
        return []
    number = cast(x, DType.FLOAT32) if x.dtype.is_bool else x
    return composer.pick(_OF_FLOATS if number.dtype.is_float else _OF_NUMBERS)(composer, number)


def _axis(composer: Composer, x: Tensor) -> int:
    return composer.pick([-1, -1, composer.integer(0, len(x.shape) - 1)])


def _sum(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    return [x.sum(_axis(composer, x), keepdims=composer.flag())]


def _whole_sum(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    return [x.sum(), x.max()] if composer.flag() else [x.sum()]


def _extreme(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    return [composer.pick([x.max, x.min])(_axis(composer, x), keepdims=composer.flag())]


def _normalised(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    axis = _axis(composer, x)
    weight, bias = (composer.input(x.dtype, x.shape[-1:]) for _ in range(2))
    return [
        composer.pick(
            [
                lambda: kiln.softmax(x, axis),
                lambda: kiln.log_softmax(x, axis),
                lambda: kiln.layer_norm(x, axis, weight, bias),
                lambda: kiln.rms_norm(x, axis, weight),
                lambda: kiln.var(x, axis, keepdims=True) + x,
                lambda: x - x.mean(axis, keepdims=True),
            ]
        )()
    ]


def _spread_again(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Each row less its greatest element, and that element beside it."""
    greatest = x.max(_axis(composer, x), keepdims=True)
    return [greatest, x - greatest]


def _searched(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    return [composer.pick([kiln.argmax, kiln.argmin])(x, -1)]


def _pooled(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Windows of two neighbours of the last axis."""
    if composer.b.bounds(x.shape[-1])[0] < 2:
        return _extreme(composer, x)
    return [kiln.max_pool(x, 2, rank=1)]


def _second_layer(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Another product, its own epilogue, and sometimes a softmax behind."""
    made = extended(composer, product_with(composer, x), (1, 2, 3))
    if made[-1].dtype.is_float and composer.flag():
        made.append(kiln.softmax(made[-1]))
    return made


def _joined(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    axis = composer.integer(0, len(x.shape) - 1)
    return [kiln.cat([x, kiln.flip(x, axis)], axis)]


def _transposed(_composer: Composer, x: Tensor) -> Sequence[Tensor]:
    return [kiln.transpose(x).sum(-1)] if len(x.shape) > 1 else [kiln.flip(x)]


def _scattered(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Updates of a table, or of one that is computed; the last of equal indices wins, or all are combined."""
    indices = kiln.expand(composer.input(DType.INT32, [*x.shape[:1], *[1] * (len(x.shape) - 1)]), x.shape)
    shape, reduction = [9, *x.shape[1:]], composer.pick(tuple(ScatterKind))
    into = composer.input(x.dtype, shape) if composer.integer(0, 1) else None
    return [kiln.scatter(indices, x, 0, shape, into=into, reduction=reduction)]


_OF_NUMBERS: Sequence[Tail] = (
    _sum,
    _extreme,
    _whole_sum,
    _spread_again,
    _searched,
    _pooled,
    _second_layer,
    _joined,
    _transposed,
    _scattered,
)
_OF_FLOATS: Sequence[Tail] = (*_OF_NUMBERS, _normalised, _normalised, _normalised)
