"""Compiled programs written by hand, with the records that the compiler would make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from tensorkiln.buffers import Binding, Buffer, BufferRole
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, ceildiv, maximum, mul, product, symbol
from tensorkiln.infer import Constraint
from tensorkiln.launch import Variable
from tensorkiln.nodes import SymVar
from tensorkiln.program import Program
from tensorkiln.schedule import (
    Axis,
    BufferInfo,
    Dependency,
    ItemAnalysis,
    IterSpace,
    KernelItem,
    Mapping,
    Operation,
    Schedule,
    ScheduleContext,
)
from tensorkiln.spec import CompiledProgram, ProgramSpec
from tensorkiln.target import Target
from tests.runtime.kernels import CHUNK, compile_object

LAST = 1 << 20
"""A lifetime that covers every item."""

Array = np.ndarray[Any, Any]


def host_target() -> Target:
    """A CPU target that any machine can run."""
    return Target.parse("cpu").model_copy(update={"features": ()})


@dataclass
class Sketch:
    """A program under construction. Items depend on the item before them."""

    symbols: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    kernels: list[ProgramSpec] = field(default_factory=list[ProgramSpec])
    operations: list[Operation] = field(default_factory=list[Operation])
    inputs: list[Binding] = field(default_factory=list[Binding])
    outputs: list[Binding] = field(default_factory=list[Binding])
    constraints: list[Constraint] = field(default_factory=list[Constraint])
    analysis: list[ItemAnalysis] = field(default_factory=list[ItemAnalysis])
    artifacts: dict[str, bytes] = field(default_factory=dict[str, bytes])
    target: Target = field(default_factory=host_target)

    def store(self, content: bytes) -> str:
        """The digest under which `content` can be fetched."""
        digest = sha256(content).hexdigest()
        self.artifacts[digest] = content
        return digest

    def buffer(
        self,
        shape: Sequence[Dim],
        role: BufferRole = "temp",
        dtype: DType = DType.FLOAT32,
        *,
        lifetime: tuple[int, int] = (0, LAST),
        alias_group: int | None = None,
        offset: Dim = 0,
        content: bytes | None = None,
    ) -> int:
        """A new buffer, bound to a var of the same number when it is an input or an output."""
        number = len(self.buffers)
        self.buffers.append(
            Buffer(
                id=number,
                dtype=dtype,
                shape=tuple(shape),
                size_bytes=mul(product(shape), dtype.itemsize),
                role=role,
                lifetime=lifetime,
                alias_group=alias_group,
                offset=offset,
                artifact=None if content is None else self.store(content),
            )
        )
        if role in ("input", "output"):
            self.bind(number, self.inputs if role == "input" else self.outputs)
        return number

    def bind(self, number: int, bindings: list[Binding]) -> None:
        """Bind a var to buffer `number`."""
        buffer = self.buffers[number]
        bindings.append(Binding(var=100 + number, buffer=number, dtype=buffer.dtype, shape=buffer.shape))

    def launch(
        self,
        ir: str,
        entry: str,
        buffers: Sequence[int],
        *,
        outs: Sequence[int] = (-1,),
        groups: Dim = 1,
        var_names: Sequence[str] = (),
        threads: Dim = 1,
    ) -> None:
        """Add a kernel and the item that launches it; `outs` are positions in `buffers`."""
        slots = tuple(range(len(buffers)))
        variables = {name: Variable(name=name, min=low, max=high) for name, (low, high) in self.symbols.items()}
        self.kernels.append(
            ProgramSpec(
                name=entry,
                entry=entry,
                artifact=self.store(compile_object(ir)),
                device="CPU",
                global_size=(groups, 1, 1),
                local_size=None,
                vars=tuple(variables.values()),
                var_names=tuple(var_names),
                globals=slots,
                outs=tuple(slots[out] for out in outs),
                ins=slots,
                buf_count=len(buffers),
                buffers=tuple(buffers),
            )
        )
        infos = [
            BufferInfo.of(number, self.buffers[number].dtype, self.buffers[number].shape, (0, LAST))
            for number in buffers
        ]
        self.operations.append(
            KernelItem(
                kernel_id=len(self.kernels) - 1,
                kernel_name=entry,
                inputs=tuple(infos[:-1]),
                outputs=tuple(infos[-1:]),
                iter=IterSpace(axes=(Axis(name="i0", size=groups),), mapping=Mapping(block=(0,)), tiles=((),)),
                context=ScheduleContext(global_dims=(threads, 1, 1), device="CPU"),
            )
        )

    def elementwise(self, ir: str, entry: str, buffers: Sequence[int], count: str = "n") -> None:
        """An elementwise kernel over `count` elements, a symbol."""
        groups = maximum(ceildiv(symbol(count), CHUNK), 1)
        self.launch(ir, entry, buffers, groups=groups, var_names=(count,))

    def compiled(self) -> CompiledProgram:
        """The record."""
        edges = [Dependency(dep_from=item, dep_to=item + 1, kind="control") for item in range(len(self.operations) - 1)]
        return CompiledProgram(
            digest="0" * 64,
            name="sketch",
            target=self.target,
            symbols=tuple(SymVar(name=name, min_val=low, max_val=high) for name, (low, high) in self.symbols.items()),
            inputs=tuple(self.inputs),
            outputs=tuple(self.outputs),
            constraints=tuple(self.constraints),
            buffers=tuple(self.buffers),
            kernels=tuple(self.kernels),
            schedule=Schedule.build(self.operations, edges, analysis=self.analysis),
        )

    def program(self, *, threads: int | None = 1, artifacts: Callable[[str], bytes] | None = None) -> Program:
        """The program, loaded."""
        return Program(self.compiled(), artifacts or self.artifacts.__getitem__, threads=threads)
