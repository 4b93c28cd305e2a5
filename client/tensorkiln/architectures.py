"""The supported CUDA architectures, with NVIDIA's figures for each.

An architecture is listed when LLVM 22's NVPTX back end and an assembler of NVIDIA's (ptxas of CUDA 12.9 or 13) know it
and the CUDA programming guide has figures for it; so sm_88, which that guide leaves out, is not. Sources:

- names and the least PTX ISA version: LLVM 22, llvm/lib/Target/NVPTX/NVPTX.td; PTX ISA, "Release History";
- sizes of launches, shared memory of 7.5 and later: CUDA programming guide 13, 5.1.3, tables 30 and 31; of 7.0 and
  7.2: CUDA C++ programming guide 11, table 15, "Technical Specifications per Compute Capability";
- which devices run what: CUDA programming guide 13, 5.1.2.3, "Feature Set Compiler Targets", and its table 28.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

KIB: Final = 1 << 10

STATIC_SHARED_BYTES: Final = 48 * KIB
"""The most static shared memory of a block, in bytes, on all architectures; more must be dynamic, by opt-in."""
MAX_THREADS_PER_BLOCK: Final = 1024
MAX_BLOCK: Final = (1024, 1024, 64)
"""Threads of a block along x, y and z, whose product is bounded by `MAX_THREADS_PER_BLOCK`."""
MAX_GRID: Final = (2**31 - 1, 65535, 65535)
"""Blocks of a grid along x, y and z."""
MAX_REGISTERS_PER_THREAD: Final = 255

Capability = tuple[int, int]
"""A compute capability: major and minor version."""


class Scope(StrEnum):
    """The devices that can run code for an architecture: its own capability and all later ones, later ones of the same
    family, or only its own.
    """

    LATER = "later"
    FAMILY = "family"
    EXACT = "exact"


@dataclass(frozen=True, slots=True)
class Architecture:
    """`ptx` is the least PTX ISA version that supports the architecture, as ten times major plus minor.

    `shared_bytes` is the most shared memory of a block, with opt-in dynamic shared memory.
    """

    name: str
    capability: Capability
    scope: Scope
    ptx: int
    shared_bytes: int

    @property
    def is_forward_compatible(self) -> bool:
        """Whether its PTX runs on every later device."""
        return self.scope is Scope.LATER

    def runs_on(self, capability: Capability) -> bool:
        """Whether a device of this compute capability can run PTX for the architecture."""
        device = _RENAMED.get(capability, capability)
        if self.scope is Scope.EXACT:
            return device == self.capability
        if self.scope is Scope.FAMILY:
            return device[0] == self.capability[0] and device >= self.capability
        return device >= self.capability


# CUDA 13 renamed capability 10.1 to 11.0, and sm_101 to sm_110; their code is interchangeable.
_RENAMED: Final[Mapping[Capability, Capability]] = MappingProxyType({(10, 1): (11, 0)})

# Compute capability, KiB of shared memory of a block, and the least PTX ISA of the name with each suffix.
_TABLE: Final[tuple[tuple[str, int, dict[str, int]], ...]] = (
    ("7.0", 96, {"": 60}),
    ("7.2", 96, {"": 61}),
    ("7.5", 64, {"": 63}),
    ("8.0", 163, {"": 70}),
    ("8.6", 99, {"": 71}),
    ("8.7", 163, {"": 74}),
    ("8.9", 99, {"": 78}),
    ("9.0", 227, {"": 78, "a": 80}),
    ("10.0", 227, {"": 86, "a": 86, "f": 88}),
    ("10.1", 227, {"": 86, "a": 86, "f": 88}),
    ("10.3", 227, {"": 88, "a": 88, "f": 88}),
    ("11.0", 227, {"": 90, "a": 90, "f": 90}),
    ("12.0", 99, {"": 87, "a": 87, "f": 88}),
    ("12.1", 99, {"": 88, "a": 88, "f": 88}),
)
_SCOPES: Final = {"": Scope.LATER, "a": Scope.EXACT, "f": Scope.FAMILY}


def _architectures() -> dict[str, Architecture]:
    found: dict[str, Architecture] = {}
    for version, shared_kib, least in _TABLE:
        major, minor = (int(part) for part in version.split("."))
        capability = _RENAMED.get((major, minor), (major, minor))
        for suffix, ptx in least.items():
            name = f"sm_{major}{minor}{suffix}"
            found[name] = Architecture(name, capability, _SCOPES[suffix], ptx, shared_kib * KIB)
    return found


ARCHITECTURES: Final[Mapping[str, Architecture]] = MappingProxyType(_architectures())
"""All architectures by name, oldest first."""
