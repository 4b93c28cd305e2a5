"""What the emulator says about a kernel that is wrong, or that it cannot run."""

from __future__ import annotations


class SimtError(Exception):
    """Base of all. None of them is raised for a kernel that only computes a wrong result."""


class UnsupportedKernel(SimtError):
    """The module holds something that the emulator would have to guess about: an unknown intrinsic, inline assembly."""


class LaunchRefused(SimtError):
    """A launch that a GPU's driver refuses, or that breaks what the kernel was told about its launch."""


class KernelFault(SimtError):
    """A launch that a GPU would answer with a wrong result, a hang or an error. The message names block and thread."""


class DivergentBarrier(KernelFault):
    """Threads of one block wait at different barrier calls, or some exited without coming to the barrier."""


class DivergentCollective(KernelFault):
    """A warp collective that not every lane in its mask comes to, or that a lane calls without being in the mask."""


class UndefinedShuffle(KernelFault):
    """A lane reads the register of a lane that takes no part in the shuffle."""


class OutOfBounds(KernelFault):
    """An access outside every allocation, or a border beside one that was written."""


class Misaligned(KernelFault):
    """An access to an address that its instruction promises to be aligned and is not."""


class ReadOnlyWritten(KernelFault):
    """A store to a constant or to a buffer that the launch may only read."""


class Race(KernelFault):
    """Two threads use a byte, one of them writes another value there, and no barrier stands between them."""
