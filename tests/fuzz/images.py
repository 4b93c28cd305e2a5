"""Convolutional networks: convolutions and what stands between them; their channels may be stored in blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorkiln import build as kiln
from tensorkiln.build import Tensor, conv, matmul
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, product

from .composer import Composer

Layer = Callable[[Composer, Tensor], Sequence[Tensor]]
"""From (batch, channels, height, width) to values, the last of which is such a tensor again."""

_DTYPES = (*[DType.FLOAT32] * 8, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT64)
_CHANNELS = (16, 8, 32, 3, 24, 33, 20, 48, 64, 1)
_SIZES = (7, 8, 4, 5, 6, 9, 12, 14, 3, 1)
_FEW = 1 << 12
"""Points of a graph that only small images fit in."""


def images(composer: Composer) -> Sequence[Tensor]:
    """An image through two to five layers and an ending."""
    dtype = composer.pick(_DTYPES)
    small = composer.points <= _FEW
    # Only a network whose weights are parameters is stored in blocks.
    composer.parameters |= composer.flag()
    batch = composer.dim((1, 2, 3), 1 if small else 3)
    channels = composer.pick((2, 4, 3) if small else _CHANNELS)
    height = composer.dim(_SIZES, 4 if small else 16)
    width = height if composer.flag() else composer.dim(_SIZES, 4 if small else 16)
    made = [composer.input(dtype, (batch, channels, height, width))]
    for _ in range(composer.pick([2, 3, 4, 5])):
        x = composer.pick([made[-1], made[-1], made[-1], composer.pick(_as_images(made))])
        found = composer.pick(_LAYERS)(composer, x)
        made += found
        alike = [each for each in _as_images(made[:-1]) if each.shape == made[-1].shape and each is not made[-1]]
        if alike and composer.flag():
            made.append(made[-1] + composer.pick(alike))
    return [*made[1:], *composer.pick(_ENDINGS)(composer, made[-1])]


def _as_images(made: Sequence[Tensor]) -> list[Tensor]:
    return [each for each in made if len(each.shape) == 4 and isinstance(each.shape[1], int)]


def _weight(composer: Composer, dtype: DType, shape: Sequence[Dim]) -> Tensor:
    declare = composer.b.parameter if composer.parameters else composer.b.input
    return declare(dtype, tuple(shape))


def _convolved(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """With a bias, a normalisation or neither, and perhaps an activation."""
    channels = composer.value(x.shape[1])
    groups = composer.pick([1, 1, 1, 1, *(count for count in (2, 4) if channels % count == 0)])
    return _window(composer, x, groups, [size for size in _CHANNELS if size % groups == 0])


def _depthwise(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    channels = composer.value(x.shape[1])
    return _window(composer, x, channels, [channels, channels, 2 * channels])


def _window(composer: Composer, x: Tensor, groups: int, outputs: Sequence[int]) -> Sequence[Tensor]:
    batch, channels, *spatial = x.shape
    per_group = composer.value(channels) // groups
    size, stride, dilation = composer.pick(_WINDOWS)
    padding = composer.pick([(size - 1) * dilation // 2, 0])
    shortest = min(composer.b.bounds(dim)[0] for dim in spatial)
    if shortest + 2 * padding < (size - 1) * dilation + 1:
        size, padding, dilation = 1, 0, 1
    most = composer.points // max(composer.value(product([batch, per_group, *spatial])) * size * size, 1)
    fitting = [count for count in outputs if count <= most]
    if not fitting:
        return [kiln.relu(x)]
    count = composer.pick(fitting)
    weight = _weight(composer, x.dtype, (count, per_group, size, size))
    bias = _weight(composer, x.dtype, (count,)) if composer.flag() else None
    made = conv(x, weight, bias, stride, padding, dilation, groups)
    # So that values stay of one magnitude, layer behind layer.
    made = made * (2 / (per_group * size * size) ** 0.5)
    if composer.flag():
        made = made * _weight(composer, x.dtype, (count, 1, 1)) + _weight(composer, x.dtype, (count, 1, 1))
    return [made, composer.pick(_ACTIVATIONS)(made)] if composer.flag() else [made]


_WINDOWS = (
    (3, 1, 1),
    (1, 1, 1),
    (3, 2, 1),
    (1, 2, 1),
    (3, 1, 2),
    (5, 1, 1),
    (2, 2, 1),
    (4, 2, 1),
    (3, 1, 3),
    (7, 2, 1),
)
"""Size, stride and dilation."""

_ACTIVATIONS: Sequence[Callable[[Tensor], Tensor]] = (
    kiln.relu,
    kiln.silu,
    kiln.gelu,
    lambda x: kiln.clip(x, 0, 6),
    lambda x: x * kiln.clip(x * 0.1667 + 0.5, 0, 1),
    kiln.leaky_relu,
)


def _pooled(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    size, stride, padding = composer.pick([(2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 1, 0)])
    if min(composer.b.bounds(dim)[0] for dim in x.shape[2:]) + 2 * padding < size:
        return [kiln.relu(x)]
    if composer.flag():
        return [kiln.max_pool2d(x, size, stride, padding)]
    return [kiln.avg_pool2d(x, size, stride, padding, count_padding=composer.flag())]


def _enlarged(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Each point twice along either axis."""
    batch, channels, height, width = x.shape
    if 4 * composer.count(x) > composer.points or composer.value(height) > 8:
        return [kiln.silu(x)]
    wide = kiln.expand(kiln.reshape(x, (batch, channels, height, 1, width, 1)), (batch, channels, height, 2, width, 2))
    return [kiln.reshape(wide, (batch, channels, height * 2, width * 2))]


def _excited(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Squeezed to its channels, by convolutions or products; each channel by what they make of it."""
    channels = x.shape[1]
    mean = x.mean((2, 3), keepdims=True)
    if composer.flag():
        small = kiln.relu(conv(mean, _weight(composer, x.dtype, (4, channels, 1, 1))))
        gate = conv(small, _weight(composer, x.dtype, (channels, 4, 1, 1)))
    else:
        small = kiln.relu(matmul(kiln.flatten(mean, 1), _weight(composer, x.dtype, (channels, 4))))
        gate = kiln.unsqueeze(kiln.unsqueeze(matmul(small, _weight(composer, x.dtype, (4, channels))), -1), -1)
    return [x * kiln.sigmoid(gate)]


def _joined(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Beside one or two convolutions of itself that keep its size."""
    parts = [x] if composer.flag() else []
    for _ in range(composer.pick([1, 2])):
        found = _convolved(composer, x)[-1]
        parts += [found] if found.shape[2:] == x.shape[2:] else []
    return [kiln.cat(parts or [x, x], 1)]


def _split(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """A part of its channels as it is, the other through a layer."""
    channels = composer.value(x.shape[1])
    if channels < 2:
        return [kiln.relu(x)]
    first = composer.pick([channels // 2, 1, channels - 1])
    left, right = kiln.split(x, [first, channels - first], 1)
    made = composer.pick([_convolved, _depthwise, _pooled])(composer, right)[-1]
    return [kiln.cat([left, made], 1) if made.shape[2:] == left.shape[2:] else made]


def _shuffled(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    batch, channels, height, width = x.shape
    count = composer.value(channels)
    groups = composer.pick([each for each in (2, 4, 3, 1) if count % each == 0])
    apart = kiln.reshape(x, (batch, groups, count // groups, height, width))
    return [kiln.reshape(kiln.permute(apart, 0, 2, 1, 3, 4), x.shape)]


def _channels_last(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Normalised over its channels, which are innermost for it, and through a product there."""
    batch, channels, height, width = x.shape
    made = kiln.layer_norm(kiln.permute(x, 0, 2, 3, 1))
    if composer.flag():
        made = kiln.gelu(matmul(made, _weight(composer, x.dtype, (channels, 16))))
        made = matmul(made, _weight(composer, x.dtype, (16, channels)))
    if composer.flag():
        made = kiln.reshape(kiln.reshape(made, (batch, product([height, width]), channels)), made.shape)
    return [made, kiln.permute(made, 0, 3, 1, 2)]


def _in_groups(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Normalised in groups of channels."""
    batch, channels, height, width = x.shape
    count = composer.value(channels)
    groups = composer.pick([each for each in (1, 2, 4, count) if count % each == 0])
    flat = kiln.reshape(x, (batch, groups, count // groups * product([height, width])))
    made = kiln.reshape(kiln.layer_norm(flat), x.shape)
    return [made * _weight(composer, x.dtype, (channels, 1, 1)) + _weight(composer, x.dtype, (channels, 1, 1))]


def _cut(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Without its border, or within one of zeros."""
    if composer.flag() or min(composer.b.bounds(dim)[0] for dim in x.shape[2:]) < 3:
        return [kiln.pad(x, [(0, 0), (0, composer.pick([0, 1])), (1, 0), (0, 1)])]
    return [kiln.shrink(x, [(0, x.shape[0]), (0, x.shape[1]), *((1, dim) for dim in x.shape[2:])])]


def _as_it_is(_composer: Composer, x: Tensor) -> Sequence[Tensor]:
    return [x]


def _classified(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """A product of its means, or of all there is."""
    flat = x.mean((2, 3))
    if (
        composer.flag()
        and all(isinstance(dim, int) for dim in x.shape[1:])
        and composer.count(x) * 10 < composer.points
    ):
        flat = kiln.flatten(x, 1)
    return [kiln.softmax(matmul(flat, _weight(composer, x.dtype, (flat.shape[1], 10))))]


def _attended(composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """Its points as tokens that attend to one another."""
    batch, channels, height, width = x.shape
    tokens = kiln.transpose(kiln.reshape(x, (batch, channels, product([height, width]))))
    query = matmul(tokens, _weight(composer, x.dtype, (channels, 8)))
    scores = kiln.softmax(matmul(query, kiln.transpose(query)) * 0.25)
    mixed = matmul(scores, tokens)
    return [mixed, kiln.reshape(kiln.transpose(mixed), x.shape)]


def _segmented(_composer: Composer, x: Tensor) -> Sequence[Tensor]:
    """The greatest channel of each point, and how great it is among them."""
    return [kiln.argmax(x, 1), kiln.softmax(x, 1)]


_LAYERS: Sequence[Layer] = (
    *[_convolved] * 6,
    *[_depthwise] * 2,
    *[_pooled] * 2,
    _enlarged,
    _excited,
    _joined,
    _joined,
    _split,
    _shuffled,
    _channels_last,
    _in_groups,
    _cut,
)
_ENDINGS: Sequence[Layer] = (_as_it_is, _as_it_is, _classified, _attended, _segmented)
