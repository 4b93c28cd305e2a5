"""The compiler's result: a `CompiledProgram` with one `ProgramSpec` per kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..on_first_use import on_first_use

if TYPE_CHECKING:
    from ..buffers import Binding as Binding
    from ..buffers import Buffer as Buffer
    from ..buffers import BufferRole as BufferRole
    from ..infer import Constraint as Constraint
    from ..launch import Variable as Variable
    from .cache_info import CacheInfo as CacheInfo
    from .compiled_program import CompiledProgram as CompiledProgram
    from .compiled_program import Provenance as Provenance
    from .compiled_program import StageRecord as StageRecord
    from .compiled_spec import CompiledSpec as CompiledSpec
    from .metadata import DerivedMetadata as DerivedMetadata
    from .metadata import derive_metadata as derive_metadata
    from .metadata import special_axis as special_axis
    from .program_spec import ProgramSpec as ProgramSpec
    from .program_spec import Resources as Resources
    from .tuning import Timing as Timing
    from .tuning import TunedKernel as TunedKernel
    from .tuning import Tuning as Tuning

__getattr__ = on_first_use(
    __name__,
    {
        ".buffers": "Binding Buffer BufferRole",
        ".infer": "Constraint",
        ".launch": "Variable",
        "cache_info": "CacheInfo",
        "compiled_program": "CompiledProgram Provenance StageRecord",
        "compiled_spec": "CompiledSpec",
        "metadata": "DerivedMetadata derive_metadata special_axis",
        "program_spec": "ProgramSpec Resources",
        "tuning": "Timing TunedKernel Tuning",
    },
)

__all__ = [
    "Binding",
    "Buffer",
    "BufferRole",
    "CacheInfo",
    "CompiledProgram",
    "CompiledSpec",
    "Constraint",
    "DerivedMetadata",
    "ProgramSpec",
    "Provenance",
    "Resources",
    "StageRecord",
    "Timing",
    "TunedKernel",
    "Tuning",
    "Variable",
    "derive_metadata",
    "special_axis",
]
