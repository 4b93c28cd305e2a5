"""The argument of a sine as a fraction of a turn, for arguments of any size.

M. H. Payne, R. N. Hanek, "Radian reduction for trigonometric functions", 1983: x / (2 pi) = m * 2**e / (2 pi), of which
only the fraction matters. So the bits of 1 / (2 pi) above a window that follows the exponent are left out, and those
below it are negligible. The window is shifted out of a table of words by conditional moves: no memory is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .exact import Pair, multiply_pairs, quick_two_sum
from .form import F32, F64, I32, I64
from .integers import word_to_double
from .number import Number, choose, literal
from .traits import Traits

# 1 / (2 pi), the 1168 bits after the point: as many as the largest float64 needs.
_BITS = 1168
_INVERSE_TURN = int(
    "28be60db9391054a7f09d5f47d4d377036d8a5664f10e4107f9458eaf7aef1586dc91b8e909374b801924bba827464873f877ac72c4a69cfba20"
    "8d7d4baed1213a671c09ad17df904e64758e60d4ce7d272117e2ef7e4a0ec7fe25fff7816603fbcbc462d6829b47db4d9fb3c9f2c26dd3d18fd9"
    "a797fa8b5d49eeb1faf97c5ecf41ce7de294a4ba9afed7ec47e357421580",
    16,
)

_TURN, _TURN_LOW = 6.283185307179586, 2.4492935982947064e-16


def half_turns_of_single(size: Number) -> tuple[Number, Number]:
    """(count, rest) with size = count * pi + rest, |rest| <= pi/2, for a float32 of 2**7 and more.

    The count is an i32 whose lowest bit alone is meaningful, the rest a float64 accurate to about 2**-60. For a smaller
    or non-finite `size`, both are arbitrary finite numbers.
    """
    pattern = size.bits()
    significand = ((pattern & 0x7FFFFF) | 0x800000).zero_extended(I64)
    # After 16 zeros, bit e - 7 is the one whose weight becomes 1/2 turn when multiplied by 2**(e - 23).
    start = (pattern >> F32.fraction) - (F32.bias + 7)
    words = _window(start, zeros=16, count=3)
    upper, middle, lower = (significand * word.zero_extended(I64) for word in words)
    turn = (upper << 32) + middle + (lower >> 32)
    count = (turn + (1 << 62)) >> 63
    rest = turn - (count << 63)
    # A signed 64-bit number exactly: the upper word offset to be unsigned, and the lower.
    signed = word_to_double((rest >> 32) ^ (1 << 31)) - 2.0**31
    return count.truncated(I32), (signed * 2.0**32 + word_to_double(rest & 0xFFFFFFFF)) * (_TURN * 2.0**-64)


class Angle(NamedTuple):
    """quarters * pi/2 + rest with |rest| <= pi/4; only the low two bits of the integer `quarters` are meaningful."""

    quarters: Number
    rest: Pair


def quarter_turns_of_double(traits: Traits, size: Number) -> Angle:
    """The angle of a float64 of 2**4 and more, with a rest accurate to more than 100 bits.

    For a smaller or non-finite `size`, an arbitrary finite angle.
    """
    pattern = size.bits()
    significand = (pattern & ((1 << F64.fraction) - 1)) | (1 << F64.fraction)
    # After 48 zeros, bit e - 4 is the one whose weight becomes 1/2 turn when multiplied by 2**(e - 52).
    start = (pattern >> F64.fraction) - (F64.bias + 4)
    first, second, third = _window(start, zeros=48, count=3)
    low = significand * second
    total = low + _high_product(significand, third)
    carry = total.below(low).zero_extended(I64)
    turn = significand * first + _high_product(significand, second) + carry
    quarters = (turn + (1 << 61)) >> 62
    return Angle(quarters, _radians(traits, turn - (quarters << 62), total))


def _radians(traits: Traits, high: Number, low: Number) -> Pair:
    """high * 2**-64 + low * 2**-128 turns, high signed and low unsigned, as an angle."""
    is_negative = high.less(0)
    high = choose(is_negative, -high - low.differs(0).zero_extended(I64), high)
    low = choose(is_negative, -low, low)
    # Words of 32 bits are exact as float64; the lower two together need rounding only when the upper two are 0.
    words = [word_to_double(part) for number in (high, low) for part in (number >> 32, number & 0xFFFFFFFF)]
    top = quick_two_sum(words[0] * 2.0**-32, words[1] * 2.0**-64)
    turns = quick_two_sum(top.high, top.low + (words[2] * 2.0**-96 + words[3] * 2.0**-128))
    angle = multiply_pairs(traits, turns, Pair(literal(F64, _TURN), literal(F64, _TURN_LOW)))
    return Pair(*(choose(is_negative, -part, part) for part in angle))


def _window(start: Number, *, zeros: int, count: int) -> Sequence[Number]:
    """`count` words of the bits of 1 / (2 pi) after `zeros` zeros, from bit `start`; a word is as wide as `start`."""
    width = start.form.bits
    shift_bits = width.bit_length() - 1
    last = {32: 3, 64: 15}[width]
    words: list[Number | int] = list(_table(width, zeros, last + count + 1))
    index = start >> shift_bits
    step = (last + 1) // 2
    while step:
        is_set = (index & step).differs(0)
        kept = len(words) - step
        words = [choose(is_set, _number(start, words[at + step]), _number(start, words[at])) for at in range(kept)]
        step //= 2
    shift = start & (width - 1)
    pieces = [_number(start, word) for word in words]
    # The complementary shift in two steps, because a shift by the whole width is poison.
    return [(pieces[at] << shift) | ((pieces[at + 1] >> 1) >> (width - 1 - shift)) for at in range(count)]


def _number(model: Number, word: Number | int) -> Number:
    return word if isinstance(word, Number) else model.literal(word)


def _table(width: int, zeros: int, count: int) -> list[int]:
    length = width * count
    string = _INVERSE_TURN >> (_BITS - (length - zeros))
    return [(string >> (length - width * (at + 1))) & ((1 << width) - 1) for at in range(count)]


def _high_product(a: Number, b: Number) -> Number:
    """The upper 64 bits of an unsigned product, from products of 32-bit halves, which vector units have."""
    mask = 0xFFFFFFFF
    a_high, a_low, b_high, b_low = a >> 32, a & mask, b >> 32, b & mask
    low_high, high_low = a_low * b_high, a_high * b_low
    carry = ((a_low * b_low) >> 32) + (low_high & mask) + (high_low & mask)
    return a_high * b_high + (low_high >> 32) + (high_low >> 32) + (carry >> 32)
