"""What the compiler returns: a `CompiledProgram` with one `ProgramSpec` per kernel."""

from ..buffers import Binding, Buffer, BufferRole
from ..infer import Constraint
from ..launch import Variable
from .compiled_program import CacheInfo, CompiledProgram, Provenance, StageRecord
from .compiled_spec import CompiledSpec
from .metadata import DerivedMetadata, derive_metadata, special_axis
from .program_spec import ProgramSpec, Resources
from .tuning import Timing, TunedKernel, Tuning

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
