"""rng_bit_generator: the bits that XLA draws on CPUs and GPUs from a key and a counter, and the counter after them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from dialect.mlir import stablehlo
from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.build.bits import bit_xor
from tensorkiln.dtypes import DType

from .movement import iota
from .op import Op
from .table import Translator
from .value import Value

_ROUNDS: Final = 10
_FACTORS: Final = (0xD2511F53, 0xCD9E8D57)
_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
"""Of Philox-4x32 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): what the words 0 and 2 of a
counter are multiplied by, and what is added to a key after each round."""


def _rng_bit_generator(op: Op) -> Sequence[Value]:
    algorithm = op.choice("rng_algorithm", stablehlo.RngAlgorithmAttr, _ALGORITHMS)
    state, wanted, shape = op.tensor(0), op.result(1), op.static_shape(1)
    if not wanted.dtype.is_integer:
        op.fail(f"bits are drawn as integers, not as {wanted.dtype}")
    sizes, draw = _ALGORITHMS[algorithm]
    length = state.shape[0] if state.rank == 1 else 0
    if state.dtype.bits != 64 or state.dtype.is_float or length not in sizes:
        op.fail(f"the state of {algorithm} is of {' or '.join(map(str, sizes))} integers of 64 bits")
    words = state.bitcast(DType.UINT64)
    is_wide = wanted.dtype.bits == 64
    bits, advanced = draw(op, [words[at] for at in range(3 if length == 3 else 2)], shape, is_wide)
    # Narrow integers are the lower bits of those of 32.
    drawn = bits.cast(DType(f"uint{wanted.dtype.bits}")).bitcast(wanted.dtype)
    return [build.stack(advanced).bitcast(state.dtype), drawn]


def _threefry(op: Op, state: Sequence[Tensor], shape: Sequence[int], is_wide: bool) -> tuple[Tensor, list[Tensor]]:
    """A key and a counter. Each word of 64 bits is one element, or two neighbours along one axis."""
    key, counter = state
    if is_wide:
        words = build.threefry(counter + _counted(op, shape), key)
        return words, [key, counter + prod(shape)]
    axis = _halved(shape)
    # What has no axis is the first of two.
    whole = [*shape] if shape else [1]
    halves = [(dim + 1) // 2 if place == axis else dim for place, dim in enumerate(whole)]
    words = build.threefry(counter + _counted(op, halves), key)
    pair = build.stack([words.cast(DType.UINT32), (words >> 32).cast(DType.UINT32)], axis + 1)
    joined = pair.reshape([2 * dim if place == axis else dim for place, dim in enumerate(halves)])
    kept = joined[tuple(slice(0, dim) for dim in whole)]
    return kept.reshape([*shape]), [key, counter + prod(halves)]


def _halved(shape: Sequence[int]) -> int:
    """The axis that neighbours are on: the first of an even length, or else the first of the longest."""
    even = [axis for axis, dim in enumerate(shape) if dim % 2 == 0]
    return even[0] if even else shape.index(max(shape)) if shape else 0


def _philox(op: Op, state: Sequence[Tensor], shape: Sequence[int], is_wide: bool) -> tuple[Tensor, list[Tensor]]:
    """A key and a counter of 128 bits, the lower half first, or one whose upper half is the key.

    Each counter gives four words of 32 bits, for four elements or for two.
    """
    key, (low, high) = state[0], (state[1:] if len(state) == 3 else (state[1], state[0]))
    size, each = prod(shape), 2 if is_wide else 4
    count = -(-size // each)
    at = low + _counted(op, [count])
    carried = high + (at < low).cast(DType.UINT64)
    first, second, third, fourth = _rounds([*_words(at), *_words(carried)], _words(key))
    mixed = [_joined(first, second), _joined(third, fourth)] if is_wide else [first, second, third, fourth]
    bits = build.stack(mixed, -1).reshape([count * each])[:size].reshape([*shape])
    after = low + count
    advanced = [key, after, high + (after < low).cast(DType.UINT64)]
    return bits, advanced[: len(state)]


def _rounds(counter: Sequence[Tensor], key: Sequence[Tensor]) -> list[Tensor]:
    """The words of 32 bits that Philox-4x32 makes of those of a counter, each as an integer of 64 bits."""
    words, keys = list(counter), list(key)
    for _ in range(_ROUNDS):
        (low, high), (other_low, other_high) = (
            _words(words[place] * factor) for place, factor in zip((0, 2), _FACTORS, strict=True)
        )
        words = [
            bit_xor(bit_xor(other_high, words[1]), keys[0]),
            other_low,
            bit_xor(bit_xor(high, words[3]), keys[1]),
            low,
        ]
        keys = [(word + step) & _LOW for word, step in zip(keys, _STEPS, strict=True)]
    return words


_LOW: Final = (1 << 32) - 1


def _words(x: Tensor) -> tuple[Tensor, Tensor]:
    """The lower and the upper half of an integer of 64 bits, each in as many."""
    return x & _LOW, x >> 32


def _joined(low: Tensor, high: Tensor) -> Tensor:
    return low | (high << 32)


def _counted(op: Op, shape: Sequence[int]) -> Tensor:
    """The position of each element in row-major order."""
    return iota(op.builder, [prod(shape)], 0, DType.UINT64).reshape([*shape])


_ALGORITHMS: Final = {"DEFAULT": ((2, 3), _philox), "PHILOX": ((2, 3), _philox), "THREE_FRY": ((2,), _threefry)}
"""How many words a state has, and what draws from it. XLA takes DEFAULT for PHILOX on CPUs and GPUs."""

OPERATORS: Final[dict[str, Translator]] = {"stablehlo.rng_bit_generator": _rng_bit_generator}
