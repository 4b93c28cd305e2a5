"""rng_bit_generator: the same bits as XLA on CPUs and GPUs, from a key and a counter, and the advanced counter."""

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
"""Of Philox-4x32 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): `_FACTORS` multiply the words
0 and 2 of a counter, `_STEPS` are added to the key after each round."""


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
    # Narrow integers are the low bits of 32-bit words.
    drawn = bits.cast(DType(f"uint{wanted.dtype.bits}")).bitcast(wanted.dtype)
    return [build.stack(advanced).bitcast(state.dtype), drawn]


def _threefry(op: Op, state: Sequence[Tensor], shape: Sequence[int], is_wide: bool) -> tuple[Tensor, list[Tensor]]:
    """Threefry of a key and a counter. A 64-bit word is one element, or two neighbours along one axis."""
    key, counter = state
    if is_wide:
        words = build.threefry(counter + _counted(op, shape), key)
        return words, [key, counter + prod(shape)]
    axis = _halved(shape)
    # A scalar is the first of two neighbours.
    whole = [*shape] if shape else [1]
    halves = [(dim + 1) // 2 if place == axis else dim for place, dim in enumerate(whole)]
    words = build.threefry(counter + _counted(op, halves), key)
    pair = build.stack([words.cast(DType.UINT32), (words >> 32).cast(DType.UINT32)], axis + 1)
    joined = pair.reshape([2 * dim if place == axis else dim for place, dim in enumerate(halves)])
    kept = joined[tuple(slice(0, dim) for dim in whole)]
    return kept.reshape([*shape]), [key, counter + prod(halves)]


def _halved(shape: Sequence[int]) -> int:
    """The axis of neighbours: the first of even length, or else the first longest one."""
    even = [axis for axis, dim in enumerate(shape) if dim % 2 == 0]
    return even[0] if even else shape.index(max(shape)) if shape else 0


def _philox(op: Op, state: Sequence[Tensor], shape: Sequence[int], is_wide: bool) -> tuple[Tensor, list[Tensor]]:
    """Philox of a key and a 128-bit counter, low half first. In a state of two words, the high half is the key.

    Each counter gives four 32-bit words, for four elements, or two of 64 bits.
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
    """The Philox-4x32 rounds on the four 32-bit words of a counter, each in a 64-bit integer."""
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
    """The low and the high half of a 64-bit integer, each as a 64-bit integer."""
    return x & _LOW, x >> 32


def _joined(low: Tensor, high: Tensor) -> Tensor:
    return low | (high << 32)


def _counted(op: Op, shape: Sequence[int]) -> Tensor:
    """The position of each element in row-major order."""
    return iota(op.builder, [prod(shape)], 0, DType.UINT64).reshape([*shape])


_ALGORITHMS: Final = {"DEFAULT": ((2, 3), _philox), "PHILOX": ((2, 3), _philox), "THREE_FRY": ((2,), _threefry)}
"""The valid numbers of words in a state, and the generator. XLA's DEFAULT on CPUs and GPUs is PHILOX."""

OPERATORS: Final[dict[str, Translator]] = {"stablehlo.rng_bit_generator": _rng_bit_generator}
