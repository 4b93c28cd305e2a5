"""What a target can do, as far as scalar code is written differently for it."""

from __future__ import annotations

from dataclasses import dataclass

from tensorkiln.target import Target


@dataclass(frozen=True, slots=True)
class Traits:
    """`has_fma`: a fused multiply-add instruction; without it one would be a call into the maths library.
    `has_half`: instructions that convert float16 to and from float32.
    `has_rounding`: instructions that round a float to a whole one.
    `has_maximum`: instructions for the maximum of floats that pass NaN on and put +0 above -0.
    `has_scaling`: instructions that multiply a float by a power of two, rounding once, and that make it an integer.
    `contracts`: mulacc may round once instead of twice (an option of the user, never a default).
    """

    has_fma: bool = False
    has_half: bool = False
    has_rounding: bool = False
    has_maximum: bool = False
    has_scaling: bool = False
    contracts: bool = False


PORTABLE = Traits()
"""Right on every target, fastest on none."""


def traits_of(target: Target, *, fast_math: bool = False) -> Traits:
    """The traits of a resolved target."""
    if target.kind != "cpu" or (target.triple or "").startswith(("aarch64", "arm64")):
        return Traits(has_fma=True, has_half=True, has_rounding=True, has_maximum=True, contracts=fast_math)
    features = frozenset(target.features)
    has_fma, has_half, has_rounding = (name in features for name in ("fma", "f16c", "sse4.1"))
    has_scaling = features >= {"avx512f", "avx512vl"}
    return Traits(has_fma, has_half, has_rounding, has_scaling=has_scaling, contracts=fast_math)
