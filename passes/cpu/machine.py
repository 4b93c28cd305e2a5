"""The machine model of a CPU: its vectors, and how fast a core computes and moves data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from passes.scalar.traits import Traits, traits_of
from passes.schedule.cost import Cost, Evaluate
from tensorkiln.dtypes import DType
from tensorkiln.schedule import KernelItem
from tensorkiln.target import Target

MASKED_BITS: Final = 256
"""Bits of the narrowest vectors with masked load and store instructions."""
PAIR, QUAD = 2, 4
"""Products of narrow integers that an instruction adds: of 16 bits, and of bytes."""
TILES: Final = frozenset({"amx-tile", "amx-int8"})
"""Features of targets with registers for tiles of bytes."""
LAUNCH_NS: Final = 900
"""Nanoseconds between two kernels of a program."""


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """The number of vector `registers`, the `bits` of each, how many products of narrow integers are added `together`
    by an instruction, and the bytes of the narrowest elements that loads can mask. `has_tiles` means registers that
    hold tiles of bytes, and products of them (AMX).
    """

    bits: int
    registers: int
    together: int = 1
    masked: int = 4
    has_tiles: bool = False

    def lanes(self, dtype: DType) -> int:
        """Elements of `dtype` in a register."""
        return self.bits // (8 * dtype.itemsize)

    @property
    def masked_lanes(self) -> int:
        """32-bit elements that one masked load takes; 0 if the target has no such instruction."""
        return self.lanes(DType.FLOAT32) if self.bits >= MASKED_BITS else 0


def vector_unit(target: Target) -> VectorUnit:
    """The widest vectors that the target's features allow."""
    features = frozenset(target.features)
    if "avx512f" in features and "avx512vl" in features:
        if "avx512bw" not in features:
            return VectorUnit(512, 32)
        most = QUAD if "avx512vnni" in features else PAIR
        return VectorUnit(512, 32, together=most, masked=1, has_tiles=most == QUAD and features >= TILES)
    if "avx2" in features:
        return VectorUnit(256, 16, together=QUAD if "avxvnni" in features else PAIR)
    if target.triple is not None and target.triple.startswith("aarch64"):
        return VectorUnit(128, 32)
    return VectorUnit(128, 16, together=PAIR if "sse2" in features else 1)


@dataclass(frozen=True, slots=True)
class Core:
    """The clock, whole-vector fused multiply-adds per cycle, bytes of cache that persist between calls, and bytes per
    nanosecond from the cache and from memory of one core.
    """

    gigahertz: float = 3.0
    products: int = 2
    cached_bytes: int = 16 << 20
    cached_rate: float = 75.0
    streamed_rate: float = 25.0


_ZEN_4: Final = Core(gigahertz=3.5, products=1, streamed_rate=27.0)
CORES: Final[Mapping[str, Core]] = MappingProxyType(
    {
        **dict.fromkeys(("skylake-avx512", "cascadelake", "icelake-server"), Core(gigahertz=2.8)),
        **dict.fromkeys(("sapphirerapids", "emeraldrapids", "graniterapids"), Core(gigahertz=3.2, streamed_rate=15.0)),
        **dict.fromkeys(("znver2", "znver3"), Core(gigahertz=3.4)),
        "znver4": _ZEN_4,
        "znver5": Core(gigahertz=4.1, streamed_rate=35.0),
        **dict.fromkeys(("neoverse-n1", "neoverse-n2"), Core(gigahertz=2.6)),
        **dict.fromkeys(("neoverse-v1", "neoverse-v2"), Core(gigahertz=2.8, products=4)),
        **dict.fromkeys(("apple-m1", "apple-m2", "apple-m3", "apple-m4"), Core(3.4, 4, 12 << 20, 90.0, 60.0)),
    }
)
"""Cores by LLVM tuning name. Zen 4 was measured on network kernels. For the others, the products per cycle are those of
the vendors' optimisation guides for the widest vectors; clocks and rates are typical of servers and laptops, since only
ratios between kernels depend on them."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The CPU model for the schedules and the scalar code."""

    vectors: VectorUnit
    traits: Traits
    core: Core = Core()

    @property
    def key(self) -> str:
        """Identifies the vector unit and the core."""
        return f"cpu {self.vectors} {self.core}"

    @property
    def reload(self) -> int:
        """The cost of a 32-bit element, written to the cache and read back."""
        additions = self.core.gigahertz * self.core.products * self.vectors.lanes(DType.FLOAT32)
        return max(1, round(2 * 4 / self.core.cached_rate * additions))

    def nanoseconds(self, cost: Cost, item: KernelItem, at: Evaluate) -> float:
        """The time on one core: the launch, and the longer one of its computation and its memory traffic."""
        cached = min(cost.moved, self.core.cached_bytes)
        waits = cached / self.core.cached_rate + (cost.moved - cached) / self.core.streamed_rate
        return LAUNCH_NS + max(cost.cycles / self.core.gigahertz, waits)

    def occupancy(self, item: KernelItem, at: Evaluate, registers: int = 0) -> float:
        """Always 1: a core runs one work-group after the other."""
        return 1.0


def machine_of(target: Target, *, fast_math: bool = False) -> Machine:
    """The model of a CPU target."""
    core = CORES.get(target.cpu or "", Core())
    return Machine(vector_unit(target), traits_of(target, fast_math=fast_math), core)
