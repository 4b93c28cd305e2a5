"""The properties of a target that scalar code depends on."""

from __future__ import annotations

from dataclasses import dataclass

from tensorkiln.target import Target


@dataclass(frozen=True, slots=True)
class Traits:
    """Instructions and options of a target.

    - `has_fma`: a fused multiply-add; without it one would be a call into the maths library.
    - `has_half`: conversions of float16 to and from float32.
    - `has_rounding`: rounding of a float to a whole number.
    - `has_maximum`: the maximum of floats that propagates NaN and puts +0 above -0.
    - `has_scaling`: a float times a power of two, rounded once, and conversion of a float to an integer.
    - `fast_math`: mulacc may round once instead of twice, and convolutions be less accurate (an option of the user,
      never a default).
    """

    has_fma: bool = False
    has_half: bool = False
    has_rounding: bool = False
    has_maximum: bool = False
    has_scaling: bool = False
    fast_math: bool = False


PORTABLE = Traits()
"""Correct on every target, fastest on none."""


def traits_of(target: Target, *, fast_math: bool = False) -> Traits:
    """The traits of a resolved target."""
    if target.kind != "cpu" or (target.triple or "").startswith(("aarch64", "arm64")):
        return Traits(has_fma=True, has_half=True, has_rounding=True, has_maximum=True, fast_math=fast_math)
    features = frozenset(target.features)
    has_fma, has_half, has_rounding = (name in features for name in ("fma", "f16c", "sse4.1"))
    has_scaling = features >= {"avx512f", "avx512vl"}
    return Traits(has_fma, has_half, has_rounding, has_scaling=has_scaling, fast_math=fast_math)
