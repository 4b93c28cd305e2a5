"""One kernel: its code, its interface in call order, and its launch sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import Field, model_validator

from ..errors import DiagnosticError
from ..expr import INT64_MAX, INT64_MIN, free_symbols
from ..launch import LaunchDims, LaunchNode, Variable, launch_from_dim, resolve_launch_dims
from ..limits import SHA256_PATTERN
from ..nodes.base import Record
from ..program_ast import DeviceRef, Linear, ProgramBinary, Sink, Source
from ..sizes import WireSize
from .metadata import LaunchSize, derive_metadata

WireLaunchSize = tuple[WireSize, WireSize, WireSize]
DEFAULT_NAME = "kernel"
ONES: LaunchSize = (1, 1, 1)


class Resources(Record):
    """What the code generator reports of a kernel; None where it does not say. Memory in bytes."""

    registers: int | None = Field(default=None, ge=0)
    shared_memory_bytes: int | None = Field(default=None, ge=0)
    spill_bytes: int | None = Field(default=None, ge=0)
    code_bytes: int | None = Field(default=None, ge=0)


class ProgramSpec(Record):
    """A kernel.

    `entry` is the symbol in `artifact` (the SHA-256 of an object, PTX or code object) or in the text `src`.
    `global_size` is the grid in work-groups; `local_size` the threads of one, None for direct global ids. `vars` bounds
    the variables, `var_names` is the order of their values in the call. `buffers` are the ids of the program's buffers
    in call order; `globals`, `outs` and `ins` are slots, that is positions in that order, the last two those that the
    kernel stores to and loads from.

    Of a GPU kernel: `binary` is the SHA-256 of `artifact` assembled for exactly the target's arch. A work-group has
    `static_shared_bytes` of shared memory by its code and is launched with `dynamic_shared_bytes` more. `alignments` is
    the alignment in bytes that the address of each slot must have; empty, it is that of the slot's element. With
    `no_overlap`, a slot in `outs` must share no byte with any other slot.
    """

    name: str
    entry: str = ""
    artifact: str | None = Field(default=None, pattern=SHA256_PATTERN)
    src: str | None = None
    device: str
    global_size: WireLaunchSize = ONES
    local_size: WireLaunchSize | None = ONES
    vars: tuple[Variable, ...] = ()
    var_names: tuple[str, ...] = ()
    globals: tuple[int, ...] = ()
    outs: tuple[int, ...] = ()
    ins: tuple[int, ...] = ()
    buf_count: int = Field(default=0, ge=0)
    buffers: tuple[int, ...] = ()
    abi: int = 1
    resources: Resources | None = None
    static_shared_bytes: int = Field(default=0, ge=0)
    dynamic_shared_bytes: WireSize = 0
    alignments: tuple[int, ...] = ()
    no_overlap: bool = True
    binary: str | None = Field(default=None, pattern=SHA256_PATTERN)

    @model_validator(mode="after")
    def _slots_are_arguments(self) -> ProgramSpec:
        if self.buffers and len(self.buffers) != self.buf_count:
            raise ValueError(f"kernel {self.name} has {len(self.buffers)} buffers but buf_count {self.buf_count}")
        for label, slots in (("globals", self.globals), ("outs", self.outs), ("ins", self.ins)):
            if self.buf_count and any(not 0 <= slot < self.buf_count for slot in slots):
                raise ValueError(f"kernel {self.name} has {label} {slots} outside its {self.buf_count} buffers")
        return self

    @model_validator(mode="after")
    def _requirements_can_be_met(self) -> ProgramSpec:
        if self.alignments and len(self.alignments) != self.buf_count:
            raise ValueError(f"kernel {self.name} has {len(self.alignments)} alignments but buf_count {self.buf_count}")
        for alignment in self.alignments:
            if alignment < 1 or alignment & (alignment - 1):
                raise ValueError(f"kernel {self.name} has the alignment {alignment}, which is not a power of two")
        if isinstance(self.dynamic_shared_bytes, int) and self.dynamic_shared_bytes < 0:
            raise ValueError(f"kernel {self.name} has {self.dynamic_shared_bytes} bytes of dynamic shared memory")
        if self.binary is not None and self.artifact is None:
            raise ValueError(f"kernel {self.name} has a binary but no artifact that it was assembled from")
        return self

    def __repr__(self) -> str:
        from ..show.program import kernel_line

        return kernel_line(self)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from ..show.program import kernels_html

        return kernels_html((self,))

    @staticmethod
    def new(name: str | None, src: str | None, device: str) -> ProgramSpec:
        """A spec with launch sizes of 1 and no variables or buffers; the default name is `kernel`."""
        name = name or DEFAULT_NAME
        return ProgramSpec(name=name, entry=name, src=src, device=device)

    def with_var(self, variable: Variable) -> ProgramSpec:
        """Append `variable` to `vars`, even when a variable of that name is there."""
        return self.model_copy(update={"vars": (*self.vars, variable)})

    def with_work_sizes(self, global_size: tuple[int, int, int], local_size: tuple[int, int, int]) -> ProgramSpec:
        """Replace the launch sizes by constants."""
        return self.with_launch_dims(global_size, local_size)

    def with_launch_dims(self, global_size: LaunchSize, local_size: LaunchSize | None) -> ProgramSpec:
        """Replace the launch sizes, symbolic or not; `local_size` None launches by direct global ids."""
        return self.model_copy(update={"global_size": global_size, "local_size": local_size})

    def with_var_names(self, var_names: Sequence[str]) -> ProgramSpec:
        """Replace the order of the variables' values in the call."""
        return self.model_copy(update={"var_names": tuple(var_names)})

    def with_buffer_metadata(self, globals: Sequence[int], outs: Sequence[int], ins: Sequence[int]) -> ProgramSpec:
        """Replace the slots."""
        return self.model_copy(update={"globals": tuple(globals), "outs": tuple(outs), "ins": tuple(ins)})

    def with_derived_metadata(self, sink: LaunchNode) -> ProgramSpec:
        """Replace slots and launch sizes by those of `sink`; variables, their order and buf_count only where unset.

        DiagnosticError as for `derive_metadata`.
        """
        derived = derive_metadata(sink)
        return self.model_copy(
            update={
                "globals": derived.globals,
                "outs": derived.outs,
                "ins": derived.ins,
                "vars": self.vars or derived.vars,
                "var_names": self.var_names or derived.var_names,
                "buf_count": self.buf_count or len(derived.globals),
                "global_size": derived.global_size,
                "local_size": derived.local_size,
            }
        )

    @property
    def has_default_launch_dims(self) -> bool:
        """Whether both sizes are the constants 1, 1, 1."""
        return self.global_size == ONES and self.local_size == ONES

    def launch_dims(self, values: Mapping[str, int]) -> LaunchDims:
        """Both launch sizes at a binding of the variables. CallBoundsError by the launch rules."""
        grid = _launch_nodes(self.global_size, self.vars)
        threads = None if self.local_size is None else _launch_nodes(self.local_size, self.vars)
        return resolve_launch_dims(grid, threads, values)

    @staticmethod
    def from_program(program: LaunchNode) -> ProgramSpec:
        """The spec of a PROGRAM node. Fields that its metadata sets take precedence over the sink.

        Launch sizes come from the metadata unless it has the defaults. DiagnosticError when a stage is missing or of
        the wrong kind.
        """
        if not isinstance(program, ProgramNode):
            raise DiagnosticError(f"expected PROGRAM op, got {program.op}")
        sink, device, source = _stages(program)
        derived = derive_metadata(sink)
        given = program.metadata or ProgramSpec(name=DEFAULT_NAME, device=device.name)
        slots = given.globals or derived.globals
        sizes = derived if given.has_default_launch_dims else given
        return ProgramSpec(
            name=given.name,
            entry=given.entry or given.name,
            src=source.code,
            device=device.name,
            global_size=sizes.global_size,
            local_size=sizes.local_size,
            vars=given.vars or derived.vars,
            var_names=given.var_names or derived.var_names,
            globals=slots,
            outs=given.outs or derived.outs,
            ins=given.ins or derived.ins,
            buf_count=given.buf_count or len(slots),
            static_shared_bytes=given.static_shared_bytes,
            dynamic_shared_bytes=given.dynamic_shared_bytes,
            alignments=given.alignments,
            no_overlap=given.no_overlap,
        )


@dataclass(frozen=True)
class ProgramNode(LaunchNode):
    """PROGRAM: the stages of one kernel, and metadata that overrides the interface derived from the sink."""

    sink: LaunchNode
    device: LaunchNode
    linear: LaunchNode | None = None
    source: LaunchNode | None = None
    binary: LaunchNode | None = None
    metadata: ProgramSpec | None = None

    @property
    def op(self) -> str:
        return "Program"

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        stages = (self.sink, self.device, self.linear, self.source, self.binary)
        return tuple(stage for stage in stages if stage is not None)


def _stages(program: ProgramNode) -> tuple[Sink, DeviceRef, Source]:
    if not isinstance(program.sink, Sink):
        raise DiagnosticError(f"PROGRAM sink stage must be SINK op, got {program.sink.op}")
    if not isinstance(program.device, DeviceRef):
        raise DiagnosticError(f"PROGRAM device must be DEVICE op, got {program.device.op}")
    if program.linear is None:
        raise DiagnosticError("PROGRAM missing LINEAR stage")
    if not isinstance(program.linear, Linear):
        raise DiagnosticError(f"PROGRAM linear stage must be LINEAR op, got {program.linear.op}")
    if program.source is None:
        raise DiagnosticError("PROGRAM missing SOURCE stage")
    if not isinstance(program.source, Source):
        raise DiagnosticError(f"PROGRAM source stage must be SOURCE op, got {program.source.op}")
    if program.binary is not None and not isinstance(program.binary, ProgramBinary):
        raise DiagnosticError(f"PROGRAM binary stage must be ProgramBinary op, got {program.binary.op}")
    return program.sink, program.device, program.source


@lru_cache(maxsize=4096)
def _launch_nodes(size: LaunchSize, variables: tuple[Variable, ...]) -> tuple[LaunchNode, ...]:
    """A launch size as expressions, cached because programs are called many times with different sizes."""
    known = {variable.name: variable for variable in variables}
    for name in frozenset[str]().union(*map(free_symbols, size)):
        known.setdefault(name, Variable(name=name, min=INT64_MIN, max=INT64_MAX))
    return tuple(launch_from_dim(dim, known) for dim in size)
