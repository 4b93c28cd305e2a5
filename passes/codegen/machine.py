"""Describe a CPU to LLVM: the instructions that exist and, separately, those that are fast."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tensorkiln.errors import DiagnosticError
from tensorkiln.target import Target

# The instruction set comes from the explicit feature list alone: a CPU name would bring in features that a virtual
# machine may hide. So the ISA starts from the architecture's baseline and the name is used for tuning only.
_UNUSED: Final = ("avx10.1", "avx10.2", "avx512bf16", "avx512fp16", "avxneconvert")
"""Extensions of x86-64 of which no instruction is used. The conversions of float32 to bfloat16 of AVX512-BF16 and
AVX-NE-CONVERT flush denormals, and LLVM would use them to move values too. With AVX512-FP16, the code generator of LLVM
22.1 aborts at some conversions of uint64 to float32. AVX10 includes the first and the third."""
_BASELINES = {"x86_64": "x86-64", "aarch64": "generic", "arm64": "generic"}
_LINUX: Final = re.compile(r"[^-]+-(?:[^-]+-linux[^-]*(?:-[^-]+)?|linux(?:-(?:gnu|musl|android)[^-]*)?)")
"""Triples of Linux, with or without a vendor: the SDK loads only ELF objects with its calling convention."""


@dataclass(frozen=True, slots=True)
class Machine:
    """LLVM's names for a target: `isa_cpu` with `features` decides which instructions exist, `tune_cpu` their costs."""

    triple: str
    isa_cpu: str
    tune_cpu: str
    features: str
    vector_bits: int

    @property
    def function_attributes(self) -> dict[str, str]:
        attributes = {"target-cpu": self.isa_cpu, "target-features": self.features, "tune-cpu": self.tune_cpu}
        if self.vector_bits:
            attributes["prefer-vector-width"] = str(self.vector_bits)
        return {name: value for name, value in attributes.items() if value}


def machine_of(target: Target) -> Machine:
    """The machine of a resolved CPU target.

    Raises DiagnosticError if the target is not a CPU, or its triple is not x86-64 or AArch64 on Linux.
    """
    triple = target.triple or ""
    architecture = triple.split("-", 1)[0]
    baseline = _BASELINES.get(architecture)
    if target.kind != "cpu" or baseline is None or not _LINUX.fullmatch(triple):
        raise DiagnosticError(
            f"no CPU code generator for target kind {target.kind!r} with triple {triple!r}: "
            f"there is one for {', '.join(sorted(_BASELINES))} on Linux, as in x86_64-unknown-linux-gnu",
            details={"stage": "codegen"},
        )
    used = frozenset(target.features).difference(_UNUSED)
    return Machine(
        triple, baseline, target.cpu or baseline, _switches(architecture, used), _vector_bits(architecture, used)
    )


def _switches(architecture: str, features: frozenset[str]) -> str:
    """LLVM's words for these features. A feature turns on those that it builds upon; AVX-512 has to be named itself."""
    absent = () if architecture != "x86_64" else _UNUSED if "avx512f" in features else (*_UNUSED, "avx512f")
    return ",".join([*(f"+{name}" for name in sorted(features)), *(f"-{name}" for name in absent)])


def _vector_bits(architecture: str, features: frozenset[str]) -> int:
    """The preferred register width in bits; 0 leaves it to LLVM.

    LLVM avoids 512-bit registers on most CPUs because the first CPUs with them lowered their clock when using them; on
    later ones the wide registers are 1.3 to 2 times as fast for these kernels.
    """
    if architecture != "x86_64":
        return 0
    return 512 if features >= {"avx512f", "avx512vl"} else 256 if "avx" in features or "avx2" in features else 128
