"""Complex numbers as pairs of real tensors, since graphs have no complex element type.

All operations but sums and products are computed in float64 and rounded once. `absolute` follows C99 for infinities and
NaN. In quotients a part may be NaN where C99 has an infinity, and a zero may have the other sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import matmul, mul

from ... import build
from ...build import Tensor
from ...dtypes import DType


@dataclass(frozen=True, slots=True, eq=False)
class Complex:
    """Two tensors of one float type, whose shapes broadcast together."""

    real: Tensor
    imag: Tensor

    @property
    def dtype(self) -> DType:
        """The type of each part."""
        return self.real.dtype

    def cast(self, dtype: DType) -> Complex:
        """Each part in another float type."""
        return Complex(self.real.cast(dtype), self.imag.cast(dtype))

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.real + other.real, self.imag + other.imag)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.real - other.real, self.imag - other.imag)

    def __mul__(self, other: Complex) -> Complex:
        return product(self, other, mul)

    def __matmul__(self, other: Complex) -> Complex:
        return product(self, other, matmul)


def product(left: Complex, right: Complex, multiply: Callable[[Tensor, Tensor], Tensor]) -> Complex:
    """A complex product, given the real `multiply`: elementwise, of matrices, or over any axes."""
    return Complex(
        multiply(left.real, right.real) - multiply(left.imag, right.imag),
        multiply(left.real, right.imag) + multiply(left.imag, right.real),
    )


def from_pairs(x: Tensor) -> Complex:
    """Complex numbers from a tensor with their parts on a last axis of 2."""
    return Complex(x[..., 0], x[..., 1])


def pairs(x: Complex) -> Tensor:
    """A tensor with the parts on a last axis of 2."""
    return build.stack([x.real, x.imag], -1)


def equal(left: Complex, right: Complex) -> Tensor:
    """Whether both parts are equal."""
    return build.equal(left.real, right.real) & build.equal(left.imag, right.imag)


def divide(left: Complex, right: Complex) -> Complex:
    """The quotient. A divisor of 0 divides both parts by its real part; a finite number over an infinite one is 0.

    A number is infinite if a part is, even if the other is NaN.
    """
    return in_float64(divided, left, right)


def divided(left: Complex, right: Complex) -> Complex:
    """`divide` for operands in float64."""
    a, b = build.absolute(right.real), build.absolute(right.imag)
    size = _with_infinity(build.maximum(a, b), a, b)
    is_zero, is_infinite = build.equal(size, 0.0), build.equal(size, float("inf"))
    usual = build.where(is_zero | is_infinite, 1.0, size)
    # Scaled by its larger part, so that no square overflows.
    c, d = right.real / usual, right.imag / usual
    whole = right.real * c + right.imag * d
    real = (left.real * c + left.imag * d) / whole
    imag = (left.imag * c - left.real * d) / whole
    is_bounded = is_infinite & (build.absolute(left.real) < float("inf")) & (build.absolute(left.imag) < float("inf"))
    real, imag = (build.where(is_bounded, 0.0, part) for part in (real, imag))
    return Complex(
        build.where(is_zero, left.real / right.real, real),
        build.where(is_zero, left.imag / right.real, imag),
    )


def absolute(x: Complex) -> Tensor:
    """The distance from 0; infinite if a part is."""
    return _size(x.cast(DType.FLOAT64)).cast(x.dtype)


def _size(x: Complex) -> Tensor:
    larger, ratio = magnitude(x)
    return larger * (ratio * ratio + 1.0).sqrt()


def magnitude(x: Complex) -> tuple[Tensor, Tensor]:
    """The larger of |real| and |imag|, and the smaller over the larger: 0 if the larger is 0 or infinite."""
    a, b = build.absolute(x.real), build.absolute(x.imag)
    larger = _with_infinity(build.maximum(a, b), a, b)
    is_usual = ~build.equal(larger, 0.0) & ~build.equal(larger, float("inf"))
    return larger, build.where(is_usual, build.minimum(a, b) / larger, 0.0)


def _with_infinity(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """`x`, but infinite where `a` or `b` is, even if the other is NaN."""
    return build.where(build.equal(a, float("inf")) | build.equal(b, float("inf")), float("inf"), x)


def sign(x: Complex) -> Complex:
    """x / |x|; 0 for 0."""
    return in_float64(_direction, x)


def _direction(x: Complex) -> Complex:
    size = _size(x)
    is_zero = build.equal(size, 0.0)
    kept = build.where(is_zero, 1.0, size)
    return Complex(build.where(is_zero, x.real, x.real / kept), build.where(is_zero, x.imag, x.imag / kept))


def einsum(subscripts: str, left: Complex, right: Complex) -> Complex:
    """A sum of products over any axes."""
    return product(left, right, partial(build.einsum, subscripts))


def in_float64(function: Callable[..., Complex], *operands: Complex) -> Complex:
    """`function` computed in float64 and rounded to the type of the first operand."""
    return function(*(each.cast(DType.FLOAT64) for each in operands)).cast(operands[0].dtype)
