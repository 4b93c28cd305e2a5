"""The whole program as buffers and steps: what runs in which order, on which storage, for how long."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tensorkiln import expr
from tensorkiln.buffers import Buffer, BufferRole
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

from ..values import Function, Value


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to run: a kernel by name, or the custom or copy op `host`; `reads` and `writes` are buffer ids."""

    kernel: str | None
    host: Value | None
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    scratch: tuple[int, ...] = ()


@dataclass(slots=True)
class ProgramPlan:
    """Buffers by id, the steps, which buffer each argument and result is in, and the contents of constants."""

    buffers: list[Buffer] = field(default_factory=list[Buffer])
    steps: list[Step] = field(default_factory=list[Step])
    arguments: tuple[int, ...] = ()
    results: tuple[int, ...] = ()
    artifacts: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def add_scratch(self, number: int, dtype: DType, elements: Dim, *, is_private: bool) -> None:
        """Give step `number` one more buffer, of which every worker has its own if it is private."""
        buffer = self.add_buffer(dtype, (elements,), "scratch" if is_private else "temp")
        step = self.steps[number]
        self.steps[number] = replace(step, scratch=(*step.scratch, buffer))

    def add_buffer(self, dtype: DType, shape: tuple[Dim, ...], role: BufferRole, artifact: str | None = None) -> int:
        """A new buffer; its lifetime is set by `close`."""
        size = expr.mul(expr.product(shape), dtype.itemsize)
        number = len(self.buffers)
        self.buffers.append(
            Buffer(id=number, dtype=dtype, shape=shape, size_bytes=size, role=role, lifetime=(0, 0), artifact=artifact)
        )
        return number

    def close(self) -> None:
        """Set the lifetime of every buffer from the steps that use it; arguments and results live throughout."""
        last = max(len(self.steps) - 1, 0)
        first_use: dict[int, int] = {}
        last_use: dict[int, int] = {}
        for number, step in enumerate(self.steps):
            for buffer in (*step.reads, *step.writes, *step.scratch):
                first_use.setdefault(buffer, number)
                last_use[buffer] = number
        kept = {*self.arguments, *self.results}
        for buffer in self.buffers:
            begin = 0 if buffer.role in ("input", "constant") else first_use.get(buffer.id, 0)
            end = last if buffer.id in kept or buffer.role == "constant" else last_use.get(buffer.id, begin)
            self.buffers[buffer.id] = buffer.model_copy(update={"lifetime": (begin, max(begin, end))})


Call = tuple[str | None, Value, Sequence[Value], Sequence[Value]]
"""`(kernel name or None, op, operands, results)`"""


def plan_program(calls: Sequence[Call], graph: Function) -> ProgramPlan:
    """The plan of a graph function, its calls in order."""
    plan = ProgramPlan()
    home: dict[Value, int] = {}
    for argument in graph.arguments:
        home[argument] = plan.add_buffer(argument.dtype, argument.shape, "input")
    plan.arguments = tuple(home[argument] for argument in graph.arguments)
    results = set(graph.results)
    for kernel, op, operands, made in calls:
        if op.kind == "vconst":
            contents = np.ascontiguousarray(op.fields["values"]).tobytes()
            digest = hashlib.sha256(contents).hexdigest()
            plan.artifacts[digest] = contents
            home[op] = plan.add_buffer(op.dtype, op.shape, "constant", digest)
            continue
        for value in made:
            home[value] = plan.add_buffer(value.dtype, value.shape, "output" if value in results else "temp")
        if op.kind != "buffer":
            reads, writes = tuple(home[value] for value in operands), tuple(home[value] for value in made)
            plan.steps.append(Step(kernel, None if kernel else op, reads, writes))
    plan.results = tuple(home[result] for result in graph.results)
    return plan
