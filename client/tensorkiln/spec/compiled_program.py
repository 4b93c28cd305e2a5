"""The answer of the compiler: everything that a runtime needs to run a graph, except the bytes of its artifacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field, model_validator

from ..buffers import Binding, Buffer
from ..limits import SHA256_PATTERN
from ..nodes import SymVar
from ..nodes.base import Record
from ..schedule import Schedule
from ..target import Target
from .abi import ABI_VERSION
from .cache_info import CacheInfo
from .checks import check_program
from .constraint import WireConstraint
from .inner import check_inner
from .prepare import check_prepare
from .program_spec import ProgramSpec
from .renaming import Renaming
from .tuning import Tuning


class StageRecord(Record):
    """One stage of the compile: its wall-clock time, and the SHA-256 of its IR text when that was asked for.

    Both belong to one compile: the program as it is stored and signed has 0 and None instead.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,63}$")
    seconds: float = Field(default=0.0, ge=0.0)
    dump: str | None = Field(default=None, pattern=SHA256_PATTERN)


class Provenance(Record):
    """What made the program: build of the compiler, versions of its parts, flags, isolation level of the compile."""

    build_id: str
    versions: dict[str, str] = Field(default_factory=dict[str, str])
    flags: tuple[str, ...] = ()
    isolation: str = ""


class CompiledProgram(Record):
    """A compiled graph. `digest` is its action digest, empty where it has none; `constraints` must hold at every call.

    `prepare` are the items of the schedule, in order of id, that follow from parameters alone, and from no symbol: what
    they write is the same at every call, so a runtime may run them once, when the parameters are bound. A call of a
    program of which nothing is bound runs the whole schedule.

    `inner` are the programs that the loops of the schedule run; a program that has some has the ABI 2 or 3.

    `in_place` are positions of inputs, only of the body of a loop: the output at the same position is computed in the
    place of the input, which is lost. A program with such a body has the ABI 3.

    `tuning` is what its schedules were picked by, where that was measured.

    ValueError (through pydantic) when the parts do not fit together: an id that names nothing, a buffer used outside
    its lifetime, a kernel that writes to an input or a constant, a symbol that is not declared.
    """

    abi: int = ABI_VERSION
    digest: str = Field(pattern=r"^([0-9a-f]{64})?$")
    name: str = ""
    target: Target
    symbols: tuple[SymVar, ...] = ()
    inputs: tuple[Binding, ...] = ()
    outputs: tuple[Binding, ...] = ()
    constraints: tuple[WireConstraint, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    kernels: tuple[ProgramSpec, ...] = ()
    schedule: Schedule = Schedule()
    prepare: tuple[int, ...] = ()
    stages: tuple[StageRecord, ...] = ()
    provenance: Provenance = Provenance(build_id="")
    cache: CacheInfo = CacheInfo(status="miss")
    tuning: Tuning | None = None
    inner: tuple[CompiledProgram, ...] = Field(default=(), exclude_if=lambda inner: not inner)
    in_place: tuple[int, ...] = Field(default=(), exclude_if=lambda positions: not positions)

    @model_validator(mode="after")
    def _parts_fit_together(self) -> CompiledProgram:
        check_program(
            symbols=self.symbols,
            inputs=self.inputs,
            outputs=self.outputs,
            buffers=self.buffers,
            kernels=self.kernels,
            schedule=self.schedule,
            in_place=self.in_place,
        )
        if self.tuning is not None and any(each.kernel >= len(self.kernels) for each in self.tuning.kernels):
            raise ValueError("the tuning names a kernel that the program does not have")
        check_inner(self)
        check_prepare(self.prepare, self.inputs, self.buffers, self.kernels, self.schedule)
        return self

    def __repr__(self) -> str:
        from ..show.program import program_line
        from ..show.signature import signature_of

        return program_line("CompiledProgram", self, signature_of(self))

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from ..show.program import program_html

        return program_html(self)

    @property
    def artifacts(self) -> frozenset[str]:
        """The digests of all artifacts that the program needs: code in each form, and constants."""
        code = {digest for kernel in self.kernels for digest in (kernel.artifact, kernel.binary) if digest}
        own = frozenset(code | {buffer.artifact for buffer in self.buffers if buffer.artifact})
        return own.union(*(inner.artifacts for inner in self.inner))

    def with_stages(self, seconds: Mapping[str, float], dumps: Mapping[str, str]) -> CompiledProgram:
        """The same program with each stage's compile time in seconds and the SHA-256 of its IR text.

        Texts that belong to no stage of the program follow the stages.
        """
        names = dict.fromkeys([*(stage.name for stage in self.stages), *dumps])
        stages = tuple(StageRecord(name=name, seconds=seconds.get(name, 0.0), dump=dumps.get(name)) for name in names)
        return self.model_copy(update={"stages": stages})

    @property
    def symbol_ranges(self) -> dict[str, tuple[int, int]]:
        """The least and the greatest value of every symbol."""
        return {symbol.name: (symbol.min_val, symbol.max_val) for symbol in self.symbols}

    def renamed(self, symbols: Mapping[str, str], vars: Mapping[int, int], nodes: Sequence[int]) -> CompiledProgram:
        """The same program in the names of another graph: symbols everywhere, vars of the bindings, node indices.

        `nodes[i]` is the new index of node `i`. Names that `symbols` or `vars` lack stay.
        """
        return Renaming(dict(symbols), dict(vars), tuple(nodes)).apply(self)
