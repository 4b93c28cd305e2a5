"""How fast a GPU moves data and computes at most: by its clocks and widths, as its driver reports them."""

from __future__ import annotations

from ..machine import Machine
from .driver import DeviceProperties


def peak_of(properties: DeviceProperties) -> Machine | None:
    """The peak of the memory and of float32 arithmetic; None where the driver leaves out a clock or a width.

    Memory moves its width twice per cycle of its clock. Each multiprocessor starts 64 fused multiply-adds per cycle at
    compute capabilities 7.x and 8.0, and 128 from 8.6 on; one counts as two operations (CUDA C++ Programming Guide,
    "Throughput of Native Arithmetic Instructions"). Tensor cores are left out, since no kernel uses them.
    """
    lanes = 64 if properties.capability <= (8, 0) else 128
    moved = 2 * properties.memory_khz * properties.memory_bits / 8 / 1e6
    computed = 2 * properties.multiprocessors * lanes * properties.clock_khz / 1e6
    return Machine(gb_per_s=moved, gflop_per_s=computed) if moved and computed else None
