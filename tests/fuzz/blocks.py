"""Blocks of networks: several contractions whose results are split, joined, masked and normalised on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorkiln import build as kiln
from tensorkiln.build import Tensor, cast, matmul
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

from .composer import Composer
from .epilogues import extended
from .prologues import operand

Block = Callable[[Composer, Tensor], Sequence[Tensor]]

# What a 16-bit float may lose in one block is more than what it holds after two: they are rare.
_DTYPES = (*[DType.FLOAT32] * 6, DType.FLOAT64, DType.FLOAT64, DType.FLOAT16)
_SEQUENCE = (4, 8, 1, 3, 7, 13, 15, 29, 33)
_FEATURES = (8, 16, 12, 24, 32, 64)


def blocks(composer: Composer) -> Sequence[Tensor]:
    """(batch, sequence, features) through one block or two, each with its residual or without."""
    dtype = composer.pick(_DTYPES)
    batch = composer.dim((1, 2, 3), 3)
    features = composer.pick(_FEATURES if composer.points > 4096 else _FEATURES[:2])
    x = composer.input(dtype, (batch, composer.dim(_SEQUENCE, composer.points // (16 * features)), features))
    made = [x]
    for _ in range(composer.pick([1, 1, 1, 2])):
        before = composer.pick([_as_it_is, kiln.layer_norm, kiln.rms_norm])(made[-1])
        found = composer.pick(_BLOCKS)(composer, before)
        made += found
        if found[-1].shape == x.shape and composer.flag():
            made.append(found[-1] + x)
    return made[1:]


def _as_it_is(x: Tensor) -> Tensor:
    return x


def _layer(composer: Composer, x: Tensor, columns: Dim) -> Tensor:
    """`x` times weights stored either way, with a bias or without."""
    depth = x.shape[-1]
    if composer.flag():
        made = matmul(x, kiln.transpose(operand(composer, x.dtype, (columns, depth))))
    else:
        made = matmul(x, operand(composer, x.dtype, (depth, columns)))
    return made + composer.input(x.dtype, (columns,)) if composer.flag() else made


def _perceptron(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    wide = _layer(composer, x, composer.pick([16, 33, 64]))
    hidden = extended(composer, wide, (1, 2))[-1]
    return [hidden, _layer(composer, cast(hidden, x.dtype), x.shape[-1])]


def _gated(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Of one product that is split, or of two."""
    size = composer.pick([16, 24])
    if composer.flag():
        gate, value = kiln.split(_layer(composer, x, 2 * size), [size, size], -1)
    else:
        gate, value = _layer(composer, x, size), _layer(composer, x, size)
    hidden = composer.pick([kiln.silu, kiln.gelu, kiln.sigmoid])(gate) * value
    return [hidden, _layer(composer, hidden, x.shape[-1])]


def _attention(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Of heads; keys and values perhaps behind older ones, scores perhaps masked."""
    batch, length, features = x.shape
    count = composer.pick([1, 2, 4])
    width = composer.value(features) // count
    if composer.flag():
        parts = kiln.split(_layer(composer, x, 3 * count * width), [count * width] * 3, -1)
    else:
        parts = tuple(_layer(composer, x, count * width) for _ in range(3))
    query, key, value = (kiln.permute(kiln.reshape(part, (batch, length, count, width)), 0, 2, 1, 3) for part in parts)
    if width % 2 == 0 and composer.flag():
        query, key = _turned(composer, query), _turned(composer, key)
    if composer.flag():
        older = composer.dim((3, 1, 8), 8)
        key, value = (
            kiln.cat([composer.input(x.dtype, (batch, count, older, width)), part], 2) for part in (key, value)
        )
    scores = matmul(query, kiln.transpose(key)) * (width**-0.5)
    if composer.flag():
        rows, columns = (kiln.arange(composer.b, dim) for dim in scores.shape[-2:])
        scores = kiln.where(kiln.unsqueeze(rows, 1) >= columns, scores, -1e4)
    mixed = matmul(kiln.softmax(scores), value)
    whole = kiln.reshape(kiln.permute(mixed, 0, 2, 1, 3), (batch, length, count * width))
    return [key, value, scores, _layer(composer, whole, features)]


def _turned(composer: Composer, x: Tensor) -> Tensor:
    """By angles that grow with the position: a rotary embedding, the halves of each row turned together."""
    half = composer.value(x.shape[-1]) // 2
    first, second = x[..., :half], x[..., half:]
    angles = composer.input(x.dtype, (x.shape[-2], half))
    return kiln.cat([first * kiln.cos(angles) - second * kiln.sin(angles), first * kiln.sin(angles) + second], -1)


def _mixed(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """A layer over the sequence, as in an MLP-Mixer; only a static one has weights."""
    length = x.shape[1]
    if not isinstance(length, int):
        return _perceptron(composer, x)
    turned = _layer(composer, kiln.transpose(x), length)
    return [kiln.transpose(turned), kiln.transpose(kiln.gelu(turned))]


def _joined(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Products side by side in one tensor: along the features, or along memory."""
    axis = composer.pick([-1, 0, 1])
    parts = [composer.pick([kiln.relu, kiln.tanh])(_layer(composer, x, x.shape[-1])) for _ in range(2)]
    whole = kiln.cat([*parts, x], axis)
    return [whole, whole.max(axis, keepdims=True), _layer(composer, whole, 9)]


def _pooled(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Squeezed over the sequence, excited again."""
    small = kiln.relu(_layer(composer, x.mean(1), 8))
    gate = kiln.sigmoid(_layer(composer, small, x.shape[-1]))
    return [gate, x * kiln.unsqueeze(gate, 1)]


_BLOCKS: Sequence[Block] = (_perceptron, _gated, _attention, _attention, _mixed, _joined, _pooled)
