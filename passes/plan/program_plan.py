"""The program as buffers with lifetimes, and steps in execution order."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np

from tensorkiln import expr
from tensorkiln.buffers import Buffer, BufferRole
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

from ..values import Function, Value
from .placements import Place, Placements


@dataclass(frozen=True, slots=True)
class Step:
    """One step: a kernel by name, or the custom, copy or while op `host`; `reads` and `writes` are buffer ids.

    `reuses` are pairs of a written and a read buffer at the same place: the kernel computes the first in place of the
    second. It gets one pointer for both, that of the written buffer, because the pointers of a kernel must not alias.
    `nodes` are the graph nodes that the kernel computes. `entry` is the function that runs it; steps that run the same
    kernel on buffers of the same kind share one.

    A prepared step depends on parameters alone and runs when they are bound. `apart` has `(buffer, writer, reader,
    reason)` for nodes of this step that read a node of another kernel in a buffer: why the two were not fused.
    """

    kernel: str | None
    host: Value | None
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    scratch: tuple[int, ...] = ()
    reuses: tuple[tuple[int, int], ...] = ()
    nodes: tuple[int, ...] = ()
    entry: str = ""
    is_prepared: bool = False
    apart: tuple[tuple[int, int, int, str], ...] = ()

    @property
    def arguments(self) -> tuple[int, ...]:
        """The buffer ids passed to the kernel, in call order: read-only, written, scratch."""
        reused = {read for _, read in self.reuses}
        return (*(buffer for buffer in self.reads if buffer not in reused), *self.writes, *self.scratch)

    @property
    def slots(self) -> tuple[int, ...]:
        """The position in `arguments` of each of `reads`, `writes` and `scratch`, in order."""
        slot_of = {buffer: slot for slot, buffer in enumerate(self.arguments)}
        slot_of |= {read: slot_of[written] for written, read in self.reuses}
        return tuple(slot_of[buffer] for buffer in (*self.reads, *self.writes, *self.scratch))

    @property
    def loaded(self) -> tuple[int, ...]:
        """The slots that the kernel reads."""
        return tuple(sorted(self.slots[: len(self.reads)]))

    @property
    def stored(self) -> tuple[int, ...]:
        """The slots that the kernel writes, scratch included."""
        return self.slots[len(self.reads) :]


@dataclass(slots=True)
class ProgramPlan:
    """Buffers by id, the steps, the buffer of each argument and result, and the contents of constants.

    `parameters` are the arguments that are bound once. `places` has the buffers that are parts of others or have parts.
    """

    buffers: list[Buffer] = field(default_factory=list[Buffer])
    steps: list[Step] = field(default_factory=list[Step])
    arguments: tuple[int, ...] = ()
    parameters: frozenset[int] = frozenset()
    results: tuple[int, ...] = ()
    artifacts: dict[str, bytes] = field(default_factory=dict[str, bytes])
    places: dict[int, Place] = field(default_factory=dict[int, Place])

    def add_scratch(self, number: int, dtype: DType, elements: Dim, *, is_private: bool) -> None:
        """Give step `number` a scratch buffer; if it is private, every worker has its own."""
        buffer = self.add_buffer(dtype, (elements,), "scratch" if is_private else "temp")
        step = self.steps[number]
        self.steps[number] = replace(step, scratch=(*step.scratch, buffer))

    def add_buffer(self, dtype: DType, shape: tuple[Dim, ...], role: BufferRole, artifact: str | None = None) -> int:
        """Add a buffer and return its id; `close` sets its lifetime."""
        size = expr.mul(expr.product(shape), dtype.itemsize)
        number = len(self.buffers)
        self.buffers.append(
            Buffer(id=number, dtype=dtype, shape=shape, size_bytes=size, role=role, lifetime=(0, 0), artifact=artifact)
        )
        return number

    def close(self) -> None:
        """Set the lifetime of every buffer from the steps that use it; arguments and results live throughout.

        Buffers of one storage have the same bytes, and so the same lifetime.
        """
        last = max(len(self.steps) - 1, 0)
        uses: dict[tuple[str, int], list[int]] = defaultdict(list)
        for number, step in enumerate(self.steps):
            for buffer in (*step.reads, *step.writes, *step.scratch):
                uses[self.storage_of(buffer)].append(number)
        for buffer in self.buffers:
            if buffer.role in ("input", "constant"):
                uses[self.storage_of(buffer.id)] += [0, last]
        for buffer in self.results:
            uses[self.storage_of(buffer)].append(last)
        for buffer in self.buffers:
            used = uses[self.storage_of(buffer.id)] or [0]
            self.buffers[buffer.id] = buffer.model_copy(update={"lifetime": (min(used), max(used))})

    def storage_of(self, buffer: int) -> tuple[str, int]:
        """The key of the buffer's storage, before any in-place reuse."""
        place = self.places.get(buffer)
        return ("buffer", buffer) if place is None else ("storage", place.storage)


def plan_program(graph: Function) -> ProgramPlan:
    """The plan of a graph function."""
    return _Planner(graph).plan()


class _Planner:
    """Builds a plan. `home` is the buffer of a value that a step or the graph needs, `loops` the step of a loop."""

    def __init__(self, graph: Function) -> None:
        self.graph, self.results = graph, set(graph.results)
        self.made = ProgramPlan()
        self.home: dict[Value, int] = {}
        self.loops: dict[Value, int] = {}
        self.storage = Placements()

    def plan(self) -> ProgramPlan:
        plan, graph = self.made, self.graph
        for argument in graph.arguments:
            self.home[argument] = plan.add_buffer(argument.dtype, argument.shape, "input")
        plan.arguments = tuple(self.home[argument] for argument in graph.arguments)
        plan.parameters = frozenset(self.home[argument] for argument in graph.parameters)
        # The results of a call follow one another.
        for _, made in groupby(graph.values, key=lambda value: value.position):
            self._add(tuple(made))
        plan.results = tuple(self._buffer(result) for result in graph.results)
        plan.places = self.storage.places(self.home)
        return plan

    def _add(self, made: Sequence[Value]) -> None:
        """Add the step of an op with these results."""
        plan, op = self.made, made[0]
        match op.kind:
            case "vconst":
                contents = np.ascontiguousarray(op.fields["values"]).tobytes()
                digest = hashlib.sha256(contents).hexdigest()
                plan.artifacts[digest] = contents
                self.home[op] = plan.add_buffer(op.dtype, op.shape, "constant", digest)
            case "buffer_view":
                self.storage.view(op)
            case "cat":
                self.storage.join(op)
            case "buffer":
                self._buffer(op)
            case "while":
                self.loops[op] = len(plan.steps)
                plan.steps.append(Step(None, op, tuple(self._buffer(value) for value in op.operands), ()))
            case "while_result":
                # The results of a loop follow it in the order of their numbers.
                number = self.loops[op.operands[0]]
                step = plan.steps[number]
                assert op.int("number") == len(step.writes), "a loop leaves every value that its body gives, in order"
                plan.steps[number] = replace(step, writes=(*step.writes, self._buffer(op)))
            case _:
                reads, writes = (tuple(self._buffer(value) for value in values) for values in (op.operands, made))
                if op.kind != "func.call":
                    plan.steps.append(Step(None, op, reads, writes))
                    return
                kernel, nodes, is_prepared = op.text("callee"), op.fields["nodes"], op.fields["is_prepared"]
                apart = tuple((reads[at], *between) for at, *between in op.fields["apart"])
                plan.steps.append(Step(kernel, None, reads, writes, nodes=nodes, is_prepared=is_prepared, apart=apart))

    def _buffer(self, value: Value) -> int:
        if value not in self.home:
            role = "output" if value in self.results else "temp"
            self.home[value] = self.made.add_buffer(value.dtype, value.shape, role)
        return self.home[value]


def name_entries(plan: ProgramPlan) -> None:
    """Set the `entry` of every kernel step of a closed plan: the kernel's name, with a number if it has several
    entries.
    """
    names: dict[Hashable, str] = {}
    counts: dict[str, int] = {}
    for number, step in enumerate(plan.steps):
        if step.kernel is None:
            continue
        kind = step.kernel, _kind(step, plan)
        if kind not in names:
            count = counts.get(step.kernel, 0)
            names[kind] = f"{step.kernel}_{count}" if count else step.kernel
            counts[step.kernel] = count + 1
        plan.steps[number] = replace(step, entry=names[kind])


def _kind(step: Step, plan: ProgramPlan) -> Hashable:
    """The properties of buffers that a compiled function depends on: slots, dtypes, shapes and alignments."""
    given = (plan.buffers[number] for number in step.arguments)
    return step.slots, tuple((buffer.dtype, buffer.shape, buffer.alignment) for buffer in given)
