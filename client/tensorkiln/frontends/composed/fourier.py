"""Discrete Fourier transforms of static lengths, as products with small tables.

A length is split into factors of at most 32, or larger primes. Each factor is a product of the signal with a table of
roots of unity, or, above 64, a convolution; between two factors each element is multiplied by a twiddle factor (J.
Cooley and J. Tukey, "An algorithm for the machine calculation of complex Fourier series", 1965). All of it is computed
in float64 and rounded once. Each factor f up to 64 adds an error of at most 2 · (f + 4) · √f · 2**-53, relative to the
2-norm of the result. Measured errors, also for primes up to 16 381, were below 2**-53 in total.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import matmul, mul
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ... import build
from ...build import Tensor
from ...dtypes import DType
from ...expr import product
from .complex_numbers import Complex
from .complex_numbers import product as complex_product
from .refusal import Refusal

LARGEST_PRIME: Final = 1 << 14
MAX_LENGTH: Final = 1 << 20
_FACTOR: Final = 32
_LARGEST_PRODUCT: Final = 64
"""The largest prime factor that is a product with a table; larger ones are convolutions."""
_WRITTEN: Final = 1 << 13
"""The most elements of a table stored in the graph; a larger table is computed."""

Table: TypeAlias = "Callable[[npt.NDArray[np.float64]], Tensor]"
"""Makes a constant of the graph."""


Signal: TypeAlias = "Complex | Tensor"
"""Complex numbers, or real ones."""


def transform(x: Signal, is_inverse: bool, table: Table, refuse: Refusal) -> Complex:
    """The transform along the last axis, whose length is static. An inverse transform is divided by the length.

    `refuse` is called for a length over 2**20, or with a prime factor over 2**14.
    """
    shape, dtype = (x.real.shape, x.dtype) if isinstance(x, Complex) else (x.shape, x.dtype)
    length = shape[-1]
    if not isinstance(length, int):
        refuse(f"a transform along a dimension of {length} is not supported; its length has to be known")
    if length < 1:
        return _complex(x)
    factors = _factors(length, refuse)
    rows = [product(shape[:-1]), length]
    wide = _moved(x, lambda part: part.cast(DType.FLOAT64).reshape(rows))
    found = _transformed(wide, factors, 1 if is_inverse else -1, table)
    if is_inverse:
        found = Complex(found.real / float(length), found.imag / float(length))
    return Complex(*(part.reshape(list(shape)).cast(dtype) for part in (found.real, found.imag)))


def along(x: Complex, axis: int, is_inverse: bool, table: Table, refuse: Refusal) -> Complex:
    """`transform` along any axis."""
    moved = Complex(*(build.moveaxis(part, axis, -1) for part in (x.real, x.imag)))
    found = transform(moved, is_inverse, table, refuse)
    return Complex(*(build.moveaxis(part, -1, axis) for part in (found.real, found.imag)))


def half(x: Tensor, table: Table, refuse: Refusal) -> Complex:
    """The first half of the transform of a real signal along the last axis: length / 2 + 1 elements."""
    whole = transform(x, False, table, refuse)
    length = x.shape[-1]
    kept = length // 2 + 1 if isinstance(length, int) else length
    return Complex(whole.real[..., :kept], whole.imag[..., :kept])


def from_half(x: Complex, length: int, table: Table, refuse: Refusal) -> Tensor:
    """The real signal of `length` elements whose transform begins with `x`, length / 2 + 1 elements.

    The imaginary parts of the first element, and of the last one for an even length, are ignored.
    """
    # The rest of the spectrum is the conjugates of the inner elements, in reverse.
    inside = slice(1, (length + 1) // 2)
    edges = [(0, 0)] * (x.imag.rank - 1) + [(1, 1 - length % 2)]
    real, imag = x.real, build.pad(x.imag[..., inside], edges)
    if length > 2:
        real = build.cat([real, x.real[..., inside].flip([-1])], -1)
        imag = build.cat([imag, -x.imag[..., inside].flip([-1])], -1)
    return transform(Complex(real, imag), True, table, refuse).real


def _factors(length: int, refuse: Refusal) -> list[int]:
    """The factors of a length, grouped; `refuse` is called for one that is too long or has a too large prime."""
    if length > MAX_LENGTH:
        refuse(f"a transform of {length} elements is longer than {MAX_LENGTH}")
    primes: list[int] = []
    rest, prime = length, 2
    while rest > 1:
        if rest % prime == 0:
            primes.append(prime)
            rest //= prime
        else:
            prime = prime + 1 if prime * prime <= rest else rest
    if primes and primes[-1] > LARGEST_PRIME:
        refuse(
            f"a transform of {length} elements, which has the prime factor {primes[-1]}: the largest is {LARGEST_PRIME}"
        )
    return _grouped(primes)


def _grouped(primes: list[int]) -> list[int]:
    """The primes combined into factors of at most 32; larger primes stay alone."""
    factors: list[int] = []
    for each in reversed(primes):
        place = next((at for at, found in enumerate(factors) if found * each <= _FACTOR), None)
        if place is None:
            factors.append(each)
        else:
            factors[place] *= each
    return factors


def _complex(x: Signal) -> Complex:
    return x if isinstance(x, Complex) else Complex(x, build.zeros(x.builder, x.shape, x.dtype))


def _moved(x: Signal, move: Callable[[Tensor], Tensor]) -> Signal:
    return Complex(move(x.real), move(x.imag)) if isinstance(x, Complex) else move(x)


def _times(x: Signal, other: Complex, multiply: Callable[[Tensor, Tensor], Tensor]) -> Complex:
    """The product with complex numbers; for a real signal it is half the work."""
    if isinstance(x, Complex):
        return complex_product(x, other, multiply)
    return Complex(multiply(x, other.real), multiply(x, other.imag))


def _transformed(x: Signal, factors: list[int], sign: int, table: Table) -> Complex:
    """The unscaled transform along the last axis, whose length is the product of the factors."""
    if not factors:
        return _complex(x)
    first, *others = factors
    if not others:
        return _of_factor(x, first, sign, table)
    rest = math.prod(others)
    outer = (x.real if isinstance(x, Complex) else x).shape[:-1]

    def arranged(part: Tensor) -> Tensor:
        return part.reshape([*outer, first, rest]).transpose(-1, -2)

    # Element n is n1 · rest + n2, and frequency k is k1 + first · k2.
    inner = _of_factor(_moved(x, arranged), first, sign, table)
    turned = inner * _turns(rest, first, first * rest, sign, inner.real, table)
    swapped = Complex(turned.real.transpose(-1, -2), turned.imag.transpose(-1, -2))
    done = _transformed(swapped, others, sign, table)
    return Complex(*(part.transpose(-1, -2).reshape([*outer, first * rest]) for part in (done.real, done.imag)))


def _of_factor(x: Signal, length: int, sign: int, table: Table) -> Complex:
    function = _product if length <= _LARGEST_PRODUCT else _convolution
    return function(x, length, sign, table)


def _convolution(x: Signal, length: int, sign: int, table: Table) -> Complex:
    """The transform as a convolution with a chirp, by 2jk = j² + k² - (k - j)², done by transforms of a power of 2.

    L. Bluestein, "A linear filtering approach to the computation of discrete Fourier transform", 1970.
    """
    size = 1 << (2 * length - 2).bit_length()
    cosine, sine = _of_quarters(np.arange(length, dtype=np.int64) ** 2 % (2 * length), 2 * length)
    chirp = Complex(table(cosine), table(sign * sine))
    spread = np.zeros(size, np.complex128)
    spread[:length] = cosine - 1j * sign * sine
    spread[size - length + 1 :] = spread[length - 1 : 0 : -1]
    filtered = np.fft.fft(spread)
    moved = _times(x, chirp, mul)
    edges = [(0, 0)] * (moved.real.rank - 1) + [(0, size - length)]
    padded = Complex(build.pad(moved.real, edges), build.pad(moved.imag, edges))
    factors = _grouped([2] * (size.bit_length() - 1))
    there = _transformed(padded, factors, -1, table)
    done = there * Complex(table(filtered.real / size), table(filtered.imag / size))
    back = _transformed(done, factors, 1, table)
    return Complex(back.real[..., :length], back.imag[..., :length]) * chirp


def _product(x: Signal, length: int, sign: int, table: Table) -> Complex:
    any_part = x.real if isinstance(x, Complex) else x
    return _times(x, _turns(length, length, length, sign, any_part, table), matmul)


def _turns(rows: int, columns: int, length: int, sign: int, x: Tensor, table: Table) -> Complex:
    """e^(±2πi · row · column / length).

    Whole quarter turns are removed before rounding, and restored by exchanging and negating the parts.
    """
    if rows * columns <= _WRITTEN:
        cosine, sine = _of_quarters(np.outer(np.arange(rows), np.arange(columns)), length)
        return Complex(table(cosine), table(sign * sine))
    down, across = (build.arange(x.builder, size, DType.INT64) for size in (rows, columns))
    places = (down.reshape([rows, 1]) * across) * 4
    quarters = (places + length // 2) // length
    angle = (places - quarters * length).cast(DType.FLOAT64) * (math.pi / 2 / length)
    cosine, sine, quarter = angle.cos(), angle.sin(), quarters & 3
    is_odd = build.equal(quarter & 1, 1)
    real, imag = build.where(is_odd, sine, cosine), build.where(is_odd, cosine, sine)
    real = build.where(build.equal(quarter, 1) | build.equal(quarter, 2), -real, real)
    imag = build.where(quarter >= 2, -imag, imag)
    return Complex(real, imag * float(sign))


def _of_quarters(places: npt.NDArray[np.int64], length: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Cosines and sines of 2π · places / length."""
    quarters = (4 * places + length // 2) // length
    angle = (4 * places - quarters * length) * (np.pi / 2 / length)
    cosine, sine = np.cos(angle), np.sin(angle)
    return (
        np.choose(quarters % 4, [cosine, -sine, -cosine, sine]),
        np.choose(quarters % 4, [sine, cosine, -sine, -cosine]),
    )
