"""The intrinsics that LLVM 22's NVPTX back end has exactly rounded code for, by least compute capability.

Found by compiling each one at every width and type for sm_70, sm_75, sm_80, sm_90, sm_100 and sm_120, and assembling
the result with ptxas; docs/ptx.md describes it, and tests/codegen/test_nvptx_intrinsics.py repeats it. `llvm.exp2` is
left out on purpose, since it becomes `ex2.approx`; use `llvm.nvvm.ex2.approx.f` to accept its error.
"""

from __future__ import annotations

import re
from typing import Final

from tensorkiln.architectures import Capability

VOLTA: Final = (7, 0)
TURING: Final = (7, 5)
AMPERE: Final = (8, 0)

_VECTOR: Final = r"(?:v(?:2|3|4|8|16))?"
_FLOAT: Final = rf"{_VECTOR}(?:f16|bf16|f32|f64)"
_POWER: Final = rf"{_VECTOR}i(?:1|8|16|32|64|128)"
# The optimiser makes integers of as many bits as a vector has truth values.
_INTEGER: Final = rf"(?:{_POWER}|i(?:[1-9]|[1-9][0-9]|1[01][0-9]|12[0-8]))"
_NARROW: Final = rf"{_VECTOR}i(?:1|8|16|32|64)"
_POINTER: Final = r"p[0-5]"

_GENERIC: Final[dict[str, str]] = {
    "sqrt|floor|ceil|trunc|rint|nearbyint|round|roundeven|fabs": _FLOAT,
    "copysign|minnum|maxnum|minimum|maximum|minimumnum|maximumnum|fma|fmuladd|is.fpclass": _FLOAT,
    "ldexp": rf"{_FLOAT}.{_VECTOR}i32",
    "fptosi.sat|fptoui.sat": rf"{_NARROW}.{_FLOAT}",
    "ctpop|bitreverse|ctlz|cttz|abs|umin|umax|smin|smax": _INTEGER,
    "fshl|fshr": _POWER,
    "uadd.sat|sadd.sat|usub.sat|ssub.sat|ushl.sat|sshl.sat": _INTEGER,
    "uadd.with.overflow|sadd.with.overflow|usub.with.overflow|ssub.with.overflow": _INTEGER,
    "umul.with.overflow|smul.with.overflow": _INTEGER,
    "scmp|ucmp": rf"{_VECTOR}i(?:2|8|16|32|64).{_INTEGER}",
    "bswap": r"i(?:16|32|64|128)",
    "vector.reduce.(?:add|mul|and|or|xor|smax|smin|umax|umin)": _INTEGER,
    "vector.reduce.(?:fadd|fmul|fmax|fmin|fmaximum|fminimum)": _FLOAT,
    "memcpy|memmove": rf"{_POINTER}.{_POINTER}.i(?:32|64)",
    "memset": rf"{_POINTER}.i(?:32|64)",
    "masked.load|masked.store": rf"(?:{_FLOAT}|{_POWER}).{_POINTER}",
    "masked.gather|masked.scatter": rf"(?:{_FLOAT}|{_POWER}).v[0-9]+{_POINTER}",
    "vector.insert|vector.extract": rf"(?:{_FLOAT}|{_POWER}).(?:{_FLOAT}|{_POWER})",
    "lifetime.start|lifetime.end|prefetch": _POINTER,
}
"""Patterns of the name after `llvm.`, and of the types."""

_PLAIN: Final = ("assume", "experimental.noalias.scope.decl", "trap")
"""Intrinsics without a type in their name."""

_FLOAT_PAIR: Final = r"f32\.f32|f16\.f16"
_DEVICE: Final[dict[Capability, tuple[str, ...]]] = {
    VOLTA: (
        r"read\.ptx\.sreg\.(?:tid|ntid|ctaid|nctaid)\.[xyz]",
        r"read\.ptx\.sreg\.(?:laneid|warpid|nwarpid|warpsize|smid|nsmid|lanemask\.(?:eq|lt|le|gt|ge))",
        r"read\.ptx\.sreg\.(?:clock|clock64|globaltimer|dynamic_smem_size|total_smem_size)",
        r"barrier0(?:\.(?:popc|and|or))?",
        r"barrier\.cta\.(?:sync|arrive)\.(?:aligned\.)?(?:all|count)",
        r"barrier\.cta\.red\.(?:popc|and|or)\.aligned\.all",
        r"bar\.warp\.sync",
        r"membar\.(?:cta|gl|sys)",
        r"shfl\.sync\.(?:bfly|down|up|idx)\.(?:i32|f32)p?",
        r"vote\.(?:any|all|uni|ballot)\.sync",
        r"match\.(?:any\.sync\.i(?:32|64)|all\.sync\.i(?:32|64)p)",
        r"activemask",
        r"ex2\.approx\.(?:ftz\.)?f(?:32)?|lg2\.approx\.(?:ftz\.)?f",
        r"(?:sin|cos)\.approx\.f",
        r"(?:rsqrt|rcp)\.approx\.ftz\.f|rsqrt\.approx\.[fd]",
        r"(?:rcp|sqrt|fma)\.rn\.[fd]|(?:div|mul|add)\.rn\.f",
        r"prmt|nanosleep|idp4a\.[su]\.[su]",
    ),
    TURING: (
        r"ldmatrix\.sync\.aligned\.m8n8\.x[124](?:\.trans)?\.b16\.p3",
        rf"mma\.m16n8k8\.row\.col\.(?:{_FLOAT_PAIR})",
        r"mma\.m8n8k16\.row\.col\.[su]8",
    ),
    AMPERE: (
        r"redux\.sync\.(?:add|min|max|umin|umax|and|or|xor)",
        r"cp\.async\.(?:ca\.shared\.global\.(?:4|8|16)|cg\.shared\.global\.16)(?:\.s)?",
        r"cp\.async\.(?:commit\.group|wait\.group|wait\.all)",
        rf"mma\.m16n8k16\.row\.col\.(?:{_FLOAT_PAIR}|bf16|[su]8)",
        r"mma\.m16n8k8\.row\.col\.(?:bf16|tf32)",
        r"mma\.m16n8k4\.row\.col\.tf32",
        r"mma\.m16n8k32\.row\.col\.[su]8",
        r"mma\.m8n8k4\.row\.col\.f64",
        r"f2tf32\.rna|f2bf16\.rn|ff2f16x2\.rn|ff2bf16x2\.rn",
    ),
}
"""Patterns of the name after `llvm.nvvm.`, by least compute capability."""


def _alternatives(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_TYPED: Final = [f"(?:{names}).(?:{types})" for names, types in _GENERIC.items()]
_GENERIC_NAME: Final = _alternatives([pattern.replace(".", r"\.") for pattern in (*_TYPED, *_PLAIN)])
_DEVICE_NAMES: Final = {since: _alternatives(list(names)) for since, names in _DEVICE.items()}


def least_capability(name: str) -> Capability | None:
    """The least compute capability with code for the intrinsic `name`; None if no supported one has it."""
    if (device := name.removeprefix("llvm.nvvm.")) != name:
        return next((since for since, names in _DEVICE_NAMES.items() if names.fullmatch(device)), None)
    generic = name.removeprefix("llvm.")
    return VOLTA if generic != name and _GENERIC_NAME.fullmatch(generic) else None
