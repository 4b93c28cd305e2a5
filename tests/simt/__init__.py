"""A GPU for tests: kernels run on the host from the LLVM IR text that becomes PTX, as strictly as can be checked.

In short:

    memory = DeviceMemory()
    x, y = memory.upload(array), memory.fresh(array.shape, array.dtype)
    SimtModule(text).launch("kernel_0", grid=(4,), block=(256,), arguments=[x, y, array.size], seed=1)
    y.numpy()
"""

from __future__ import annotations

from .errors import (
    DivergentBarrier,
    DivergentCollective,
    KernelFault,
    LaunchRefused,
    Misaligned,
    OutOfBounds,
    Race,
    ReadOnlyWritten,
    SimtError,
    UndefinedShuffle,
    UnsupportedKernel,
)
from .memory import Buffer, DeviceMemory
from .module import SimtModule
from .watch import Watch

__all__ = [
    "Buffer",
    "DeviceMemory",
    "DivergentBarrier",
    "DivergentCollective",
    "KernelFault",
    "LaunchRefused",
    "Misaligned",
    "OutOfBounds",
    "Race",
    "ReadOnlyWritten",
    "SimtError",
    "SimtModule",
    "UndefinedShuffle",
    "UnsupportedKernel",
    "Watch",
]
