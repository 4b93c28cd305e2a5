"""The graphs that are composed, by family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from hypothesis import strategies as st

from tensorkiln import build as kiln
from tensorkiln.build import Tensor, cast
from tensorkiln.dtypes import DType
from tests.compiled import runs_here
from tests.emulated import TARGET as GPU

from .blocks import blocks
from .composer import Case, Composer, Way
from .epilogues import extended, step
from .images import images
from .products import any_product
from .repeated import repeated
from .sizes import SMALL
from .tails import tail

Family = Callable[[Composer], Sequence[Tensor]]
"""Composes a graph; what it returns are tensors of it, the last of which is its result."""

POINTS = 1 << 19
GPU_POINTS = 1 << 10
"""Of a graph that is run in the emulator, which takes a millisecond for a hundred points or so."""
UNFUSED_NODES = 32
"""Without fusion each node is a kernel, which takes 10 to 30 ms to compile."""
LEVELS = ("cpu:x86-64-v3", "cpu:x86-64-v2", "cpu:x86-64-v4", "cpu:native")

_DTYPES = (DType.FLOAT32, DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT64, DType.INT32, DType.INT8)
_SIZES = (2, 1, 3, 4, 7, 16, 17, 33, 65, 130)


def behind_products(composer: Composer) -> Sequence[Tensor]:
    """A contraction, its epilogue, perhaps a reduction or a second contraction behind that."""
    pool = extended(composer, any_product(composer))
    return [*pool, *tail(composer, pool[-1])]


def moved_then_reduced(composer: Composer) -> Sequence[Tensor]:
    """Chains of movement and maps before reductions."""
    x = _input(composer, composer.pick(_DTYPES))
    for _ in range(composer.pick([2, 1, 3, 5, 7])):
        x = composer.pick(_MOVES)(composer, x)
        if composer.flag():
            x = step(composer, x, [x])
    return [x, *tail(composer, x), *tail(composer, x)]


def in_place(composer: Composer) -> Sequence[Tensor]:
    """Chains of maps over stored values, each of which may be computed where the last one was."""
    pool = [_input(composer, composer.pick(_DTYPES))]
    for _ in range(composer.pick([2, 3, 4, 6])):
        x = composer.pick(pool[-2:])
        # Stored as it is, so that the next map may take its place: by a reduction that it waits for, or by the node.
        if composer.flag():
            x = composer.b.append("contiguous", x.dtype, x.shape, in_var=x.var)
        elif x.shape and not x.dtype.is_bool:
            x = kiln.maximum(x, x.max(-1, keepdims=True))
        pool.append(step(composer, x, pool[:1]))
    return [*pool, *tail(composer, pool[-1])]


def many_outputs(composer: Composer) -> Sequence[Tensor]:
    """Ten to thirty results of one shape, and what is reduced of some; of a product in half of the graphs."""
    x = any_product(composer) if composer.flag() else _input(composer, composer.pick(_DTYPES))
    pool = [x]
    for _ in range(composer.pick([10, 12, 25, 30])):
        pool.append(step(composer, composer.pick(pool[-3:]), pool))
    composer.b.output(*pool[1:-1])
    return [*pool[-1:], *tail(composer, pool[-1])]


def long_chains(composer: Composer) -> Sequence[Tensor]:
    """Over 48 ops deep, or over 256 on all paths, or over 24 values that others share: each limit of form-kernels."""
    x = any_product(composer) if composer.flag() else _input(composer, composer.pick([DType.FLOAT32, DType.INT32]))
    wide = composer.flag()
    pool = [x]
    for _ in range(composer.pick([30, 50, 60])):
        last = cast(pool[-1], DType.FLOAT32) if pool[-1].dtype.is_bool else pool[-1]
        other = composer.pick(pool[-6:]) if wide else pool[-1]
        small = last * 0.5 + 1 if last.dtype.is_float else last * 3 + 1
        pool.append(small if other is pool[-1] else kiln.maximum(small, cast(other, last.dtype)))
        if composer.integer(0, 7) == 7:
            pool.append(step(composer, pool[-1], pool[-4:]))
    return [*composer.pick([pool[-1:], pool[-4:], pool[-30:]]), *tail(composer, pool[-1])]


FAMILIES: dict[str, Family] = {
    "behind_products": behind_products,
    "blocks": blocks,
    "images": images,
    "repeated": repeated,
    "moved_then_reduced": moved_then_reduced,
    "in_place": in_place,
    "many_outputs": many_outputs,
    "long_chains": long_chains,
}


@cache
@st.composite
def graphs(draw: st.DrawFn, name: str) -> Case:
    """A graph of a family, and the ways to compile it: for a CPU or a GPU, with the schedules that are picked or with
    any that are offered; then without fusion or for another CPU.
    """
    # What does not depend on the graph is drawn first: a choice that others follow is hard to simplify.
    target = draw(st.sampled_from([*_levels(), *_levels(), GPU]))
    unfused = Way(target, fusion=False)
    first = draw(st.sampled_from([*[Way(target)] * 3, Way(target, any_schedule=True)]))
    other = draw(st.sampled_from([*[first] * 8, unfused, unfused, *map(Way, _levels())]))
    seed = draw(st.integers(0, 9999))
    more = draw(st.sampled_from([0, 0, 1, 3]))
    composer = Composer(draw, GPU_POINTS if target == GPU else POINTS)
    made = FAMILIES[name](composer)
    results = dict.fromkeys(made[-1:])
    for _ in range(more):
        results[composer.pick(made)] = None
    is_small = other.fusion or made[-1].var <= UNFUSED_NODES
    ways = dict.fromkeys([first, other] if is_small else [first])
    return composer.case(list(results), seed, list(ways))


@cache
def _levels() -> tuple[str, ...]:
    return tuple(level for level in LEVELS if runs_here(level))


def _input(composer: Composer, dtype: DType) -> Tensor:
    rank = composer.pick([2, 1, 3, 4])
    left = min(composer.points, 1 << 14)
    shape = []
    for _ in range(rank):
        shape.append(composer.dim(_SIZES, left))
        left //= max(composer.value(shape[-1]), 1)
    return composer.input(dtype, shape)


def _permuted(composer: Composer, x: Tensor) -> Tensor:
    return kiln.permute(x, composer.draw(st.permutations(range(len(x.shape)))))


def _padded(composer: Composer, x: Tensor) -> Tensor:
    return kiln.pad(x, [(composer.integer(0, 2), composer.integer(0, 2)) for _ in x.shape])


def _flipped(composer: Composer, x: Tensor) -> Tensor:
    return kiln.flip(x, composer.integer(0, len(x.shape) - 1)) if x.shape else x


def _joined_axes(composer: Composer, x: Tensor) -> Tensor:
    return kiln.flatten(x, composer.integer(0, len(x.shape) - 2)) if len(x.shape) > 1 else x


def _split_axis(_composer: Composer, x: Tensor) -> Tensor:
    last = x.shape[-1] if x.shape else 1
    for factor in (4, 3, 2):
        if isinstance(last, int) and last % factor == 0:
            return kiln.reshape(x, (*x.shape[:-1], factor, last // factor))
    return kiln.unsqueeze(x, -1) if len(x.shape) < 5 else x


def _cut(composer: Composer, x: Tensor) -> Tensor:
    axis = composer.integer(0, len(x.shape) - 1) if x.shape else 0
    if not x.shape or composer.b.bounds(x.shape[axis])[0] < 3:
        return x
    return kiln.shrink(x, [(1, dim - 1) if place == axis else (0, dim) for place, dim in enumerate(x.shape)])


def _repeated(composer: Composer, x: Tensor) -> Tensor:
    if len(x.shape) > 4 or composer.count(x) > 4096:
        return x
    return kiln.expand(kiln.unsqueeze(x, 0), (composer.pick(SMALL), *x.shape))


def _strided(_composer: Composer, x: Tensor) -> Tensor:
    return x[..., ::2] if x.shape and isinstance(x.shape[-1], int) and x.shape[-1] > 1 else x


def _doubled(composer: Composer, x: Tensor) -> Tensor:
    axis = composer.integer(0, len(x.shape) - 1) if x.shape else 0
    return kiln.cat([x, x], axis) if x.shape else x


def _taken(composer: Composer, x: Tensor) -> Tensor:
    if not x.shape:
        return x
    return kiln.take(x, composer.input(DType.INT32, (composer.pick(SMALL),)), 0)


_MOVES: Sequence[Callable[[Composer, Tensor], Tensor]] = (
    _permuted,
    _padded,
    _flipped,
    _joined_axes,
    _split_axis,
    _cut,
    _repeated,
    _strided,
    _doubled,
    _taken,
)
