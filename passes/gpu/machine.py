"""The machine model of a GPU: its multiprocessors, and how fast they compute and move data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from types import MappingProxyType
from typing import Final

from passes.scalar.traits import Traits, traits_of
from passes.schedule.cost import Cost, Evaluate
from passes.schedule.record import shared_bytes, threads_of
from tensorkiln.schedule import KernelItem, work_groups
from tensorkiln.target import Target

from .intrinsics import NVVM, Intrinsics

VECTOR_BYTES: Final = 16
"""Bytes of the widest load and store of one thread."""
LAUNCH_NS: Final = 2500.0
"""Nanoseconds from the end of one kernel of a stream to the work of the next."""
LATENCY_NS: Final = 600.0
"""Nanoseconds of a read from memory."""
IN_FLIGHT: Final = 64
"""Bytes that a thread has in flight: the loads issued before the first is needed."""
MAX_RESIDENT: Final = 32
"""Most work-groups on one multiprocessor."""
CACHE_SPEEDUP: Final = 4
"""How much faster than memory the L2 cache is."""
KIB: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class Device:
    """The largest device sold of an architecture.

    Its multiprocessors, 32-bit additions per cycle, clock, threads, bytes of shared memory, bytes per nanosecond from
    memory, and registers. The threads of a `wave` run in lock step and exchange registers.
    """

    multiprocessors: int
    lanes: int
    gigahertz: float
    threads: int
    shared_bytes: int
    rate: float
    registers: int = 64 * KIB
    wave: int = 32


DEVICES: Final[Mapping[str, Device]] = MappingProxyType(
    {
        "sm_70": Device(80, 64, 1.53, 2048, 96 * KIB, 900),
        "sm_72": Device(8, 64, 1.38, 2048, 96 * KIB, 137),
        "sm_75": Device(72, 64, 1.77, 1024, 64 * KIB, 672),
        "sm_80": Device(108, 64, 1.41, 2048, 164 * KIB, 2039),
        "sm_86": Device(84, 128, 1.86, 1536, 100 * KIB, 1008),
        "sm_87": Device(16, 128, 1.30, 1536, 164 * KIB, 205),
        "sm_89": Device(142, 128, 2.52, 1536, 100 * KIB, 960),
        "sm_90": Device(132, 128, 1.98, 2048, 228 * KIB, 3350),
        "sm_100": Device(148, 128, 1.97, 2048, 228 * KIB, 8000),
        "sm_101": Device(20, 128, 1.57, 1536, 228 * KIB, 273),
        "sm_103": Device(148, 128, 1.92, 2048, 228 * KIB, 8000),
        "sm_110": Device(20, 128, 1.57, 1536, 228 * KIB, 273),
        "sm_120": Device(188, 128, 2.62, 1536, 100 * KIB, 1792),
        "sm_121": Device(48, 128, 2.42, 1536, 128 * KIB, 273),
    }
)
"""Multiprocessors, clocks and rates from NVIDIA's data sheets and white papers of V100, AGX Xavier, Titan RTX, A100,
RTX 3090 Ti, AGX Orin, RTX 6000 Ada, H100 SXM, B200, AGX Thor, B300, RTX PRO 6000 Blackwell and GB10; the rest from the
tables of compute capabilities in the CUDA programming guide. Suffixes of architectures make no difference."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The GPU model for the schedules and the scalar code; `runtime` is the device kind in schedule records."""

    traits: Traits
    device: Device = DEVICES["sm_80"]
    intrinsics: Intrinsics = NVVM
    runtime: str = "CUDA"

    @property
    def key(self) -> str:
        """Identifies the device."""
        return f"{self.runtime} {self.device}"

    @property
    def reload(self) -> int:
        """The cost of a 32-bit element, which stays in the L2 cache in between."""
        device = self.device
        additions = device.multiprocessors * device.lanes * device.gigahertz
        return max(1, round(2 * 4 / (device.rate * CACHE_SPEEDUP) * additions))

    def nanoseconds(self, cost: Cost, item: KernelItem, at: Evaluate) -> float:
        """The launch, and the longer one of the computation and the memory traffic.

        Computation includes the idle multiprocessors of the last round of work-groups; the work-groups resident on one
        multiprocessor overlap their waits. Traffic takes at least one latency, and more if few threads keep memory
        busy.
        """
        device = self.device
        groups = max(1, at(work_groups(item.context)[0]))
        rounds = ceil(groups / device.multiprocessors)
        resident = max(1, min(rounds, round(self.occupancy(item, at) * device.threads / threads_of(item))))
        cycles = cost.cycles / groups
        computes = max(cycles * rounds, (cycles + cost.waits) * ceil(rounds / resident)) / device.gigahertz
        in_flight = min(groups * threads_of(item), device.multiprocessors * device.threads) * IN_FLIGHT
        waits = max(LATENCY_NS, cost.moved / min(device.rate, in_flight / LATENCY_NS))
        return LAUNCH_NS + max(computes, waits)

    def occupancy(self, item: KernelItem, at: Evaluate, registers: int = 0) -> float:
        """The share of a multiprocessor's thread slots that work-groups of so many registers per thread can fill."""
        device, threads = self.device, threads_of(item)
        limits = [MAX_RESIDENT, device.threads // threads]
        shared = at(shared_bytes(item))
        if shared:
            limits.append(device.shared_bytes // shared)
        if registers:
            limits.append(device.registers // (registers * threads))
        return min(1.0, max(0, min(limits)) * threads / device.threads)


def machine_of(target: Target, *, fast_math: bool = False) -> Machine:
    """The model of a CUDA target."""
    name = (target.arch or "").rstrip("af")
    return Machine(traits_of(target, fast_math=fast_math), DEVICES.get(name, DEVICES["sm_80"]))
