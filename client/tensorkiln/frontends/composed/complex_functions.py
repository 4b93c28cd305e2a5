"""Functions of complex numbers.

They are computed in float64 and rounded once. `log` and `sqrt` of infinities, NaN and signed zeros are those of C99,
and so are `tanh` and `tan` but for the signs of zeros. Elsewhere a part may be NaN where C99 has an infinity, and a
zero may have the other sign.
"""

from __future__ import annotations

from ... import build
from .complex_numbers import Complex, divided, in_float64, magnitude
from .trigonometry import atan2, cosh, is_negative, sinh


def exp(x: Complex) -> Complex:
    """The exponential; real for a real operand."""
    return in_float64(_exponential, x)


def _exponential(x: Complex) -> Complex:
    # The square of e^(x/2), which overflows only if the result does.
    half = (x.real * 0.5).exp()
    is_real, is_zero = build.equal(x.imag, 0.0), build.equal(x.real, -float("inf"))
    real, imag = half * (half * x.imag.cos()), half * (half * x.imag.sin())
    real = build.where(is_real, half * half, real)
    return Complex(build.where(is_zero, 0.0, real), build.where(is_real, x.imag, build.where(is_zero, 0.0, imag)))


def log(x: Complex) -> Complex:
    """The principal logarithm: its imaginary part is in (-π, π]."""
    return in_float64(_logarithm, x)


def _logarithm(x: Complex) -> Complex:
    larger, ratio = magnitude(x)
    far = larger.log() + build.log1p(ratio * ratio) * 0.5
    # Near 1 use |x|² - 1 as (|x| - 1)(|x| + 1), which avoids cancellation.
    smaller = larger * ratio
    near = build.log1p((larger - 1.0) * (larger + 1.0) + smaller * smaller) * 0.5
    is_near = (larger > 0.5) & (larger < 2.0)
    return Complex(build.where(is_near, near, far), atan2(x.imag, x.real))


def sqrt(x: Complex) -> Complex:
    """The principal root: its real part is not negative."""
    return in_float64(_root, x)


def _root(x: Complex) -> Complex:
    a, b = build.absolute(x.real), build.absolute(x.imag)
    larger, ratio = magnitude(x)
    own = build.where(build.equal(larger, 0.0) | build.equal(larger, float("inf")), 1.0, a / larger)
    long = larger.sqrt() * ((own + (ratio * ratio + 1.0).sqrt()) * 0.5).sqrt()
    short = build.where(build.equal(long, 0.0), b, b / (long * 2.0))
    is_infinite = build.equal(b, float("inf"))
    is_left = is_negative(x.real)
    real = build.where(is_infinite, float("inf"), build.where(is_left, short, long))
    size = build.where(is_infinite, float("inf"), build.where(is_left, long, short))
    return Complex(real, build.where(is_negative(x.imag), -size, size))


def rsqrt(x: Complex) -> Complex:
    """1 over the principal root."""
    return in_float64(_inverse_root, x)


def _inverse_root(x: Complex) -> Complex:
    one = Complex(build.ones(x.real.builder, x.real.shape, x.dtype), build.zeros(x.real.builder, x.real.shape, x.dtype))
    return divided(one, _root(x))


def power(left: Complex, right: Complex) -> Complex:
    """e^(right · log left); 0 to a power whose real part is positive is 0, and anything to the power 0 is 1."""
    return in_float64(_raised, left, right)


def _raised(left: Complex, right: Complex) -> Complex:
    is_one = build.equal(right.real, 0.0) & build.equal(right.imag, 0.0)
    is_zero_power = build.equal(left.real, 0.0) & build.equal(left.imag, 0.0) & (right.real > 0.0)
    found = _exponential(right * _logarithm(left))
    real = build.where(is_one, 1.0, build.where(is_zero_power, 0.0, found.real))
    return Complex(real, build.where(is_one | is_zero_power, 0.0, found.imag))


def sin(x: Complex) -> Complex:
    """sin a cosh b + i cos a sinh b; infinite where |b| is over 710."""
    return in_float64(lambda z: Complex(z.real.sin() * cosh(z.imag), z.real.cos() * sinh(z.imag)), x)


def cos(x: Complex) -> Complex:
    """cos a cosh b - i sin a sinh b; infinite where |b| is over 710."""
    return in_float64(lambda z: Complex(z.real.cos() * cosh(z.imag), -(z.real.sin() * sinh(z.imag))), x)


def tanh(x: Complex) -> Complex:
    """The hyperbolic tangent, without overflow; that of C99 for infinities and NaN."""
    return in_float64(_hyperbolic_tangent, x)


def _hyperbolic_tangent(x: Complex) -> Complex:
    """(sinh a cosh a + i sin b cos b) / (sinh² a + cos² b), all by 4 e^-2|a|, so that nothing overflows."""
    size = build.absolute(x.real)
    # Both are computed directly: 1 minus the other would lose small values.
    less, rest = -build.expm1(size * -2.0), (size * -2.0).exp()
    sine, cosine = x.imag.sin(), x.imag.cos()
    whole = less * less + rest * (cosine * cosine) * 4.0
    real, imag = less * (2.0 - less) / whole, rest * (sine * cosine) * 4.0 / whole
    is_infinite, is_real = build.equal(size, float("inf")), build.equal(x.imag, 0.0)
    real = build.where(is_infinite, 1.0, real)
    imag = build.where(is_real, x.imag, build.where(is_infinite, 0.0, imag))
    return Complex(build.where(is_negative(x.real), -real, real), imag)


def tan(x: Complex) -> Complex:
    """-i tanh(i x)."""
    turned = tanh(Complex(-x.imag, x.real))
    return Complex(turned.imag, -turned.real)


def expm1(x: Complex) -> Complex:
    """e^x - 1, accurate near 0."""
    return in_float64(_exponential_less_one, x)


def _exponential_less_one(x: Complex) -> Complex:
    less, half = build.expm1(x.real), (x.imag * 0.5).sin()
    return Complex(less * x.imag.cos() - half * half * 2.0, _exponential(x).imag)


def log1p(x: Complex) -> Complex:
    """log(1 + x), accurate near 0."""
    return in_float64(_logarithm_of_more, x)


def _logarithm_of_more(x: Complex) -> Complex:
    far = _logarithm(Complex(x.real + 1.0, x.imag))
    is_near = (build.absolute(x.real) < 0.5) & (build.absolute(x.imag) < 0.5)
    near = build.log1p(x.real * (x.real + 2.0) + x.imag * x.imag) * 0.5
    return Complex(build.where(is_near, near, far.real), far.imag)


def logistic(x: Complex) -> Complex:
    """1 / (1 + e^-x), computed from e^x or e^-x, whichever does not overflow."""
    return in_float64(_s_curve, x)


def _s_curve(x: Complex) -> Complex:
    size = (-build.absolute(x.real)).exp()
    real, imag = size * x.imag.cos(), size * x.imag.sin()
    whole = (real + 1.0) * (real + 1.0) + imag * imag
    own = build.where(x.real < 0.0, real + size * size, real + 1.0)
    return Complex(own / whole, imag / whole)


def cbrt(x: Complex) -> Complex:
    """The principal cube root: a third of the angle."""
    return in_float64(_cube_root, x)


def _cube_root(x: Complex) -> Complex:
    found = _logarithm(x)
    root = _exponential(Complex(found.real / 3.0, found.imag / 3.0))
    is_zero = build.equal(x.real, 0.0) & build.equal(x.imag, 0.0)
    return Complex(build.where(is_zero, 0.0, root.real), build.where(is_zero, x.imag, root.imag))
