"""What the schedules need to know of a CPU: how wide its vectors are and how many registers hold them."""

from __future__ import annotations

from dataclasses import dataclass

from passes.scalar.traits import Traits, traits_of
from tensorkiln.dtypes import DType
from tensorkiln.target import Target


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """`bits` of a vector register, and `registers` of them."""

    bits: int
    registers: int

    def lanes(self, dtype: DType) -> int:
        """Elements of `dtype` in a register."""
        return self.bits // (8 * dtype.itemsize)


def vector_unit(target: Target) -> VectorUnit:
    """The widest vectors that the target's features allow."""
    features = frozenset(target.features)
    if "avx512f" in features and "avx512vl" in features:
        return VectorUnit(512, 32)
    if "avx2" in features:
        return VectorUnit(256, 16)
    if target.triple is not None and target.triple.startswith("aarch64"):
        return VectorUnit(128, 32)
    return VectorUnit(128, 16)


@dataclass(frozen=True, slots=True)
class Machine:
    """A CPU as the schedules and the scalar code see it."""

    vectors: VectorUnit
    traits: Traits


def machine_of(target: Target, *, fast_math: bool = False) -> Machine:
    """What is known of a CPU target."""
    return Machine(vector_unit(target), traits_of(target, fast_math=fast_math))
