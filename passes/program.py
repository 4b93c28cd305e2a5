"""Build the compiled program from a scheduled module and the code of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd
from typing import Any

from dialect.mlir import ir
from tensorkiln import expr
from tensorkiln.buffers import Binding
from tensorkiln.graph import Graph
from tensorkiln.launch import Variable
from tensorkiln.nodes import Region
from tensorkiln.schedule import (
    Allocation,
    BufferInfo,
    HostCallback,
    ItemAnalysis,
    KernelItem,
    Layout,
    Loop,
    MemoryTransfer,
    Operation,
    OpRef,
    Schedule,
)
from tensorkiln.spec import ProgramSpec
from tensorkiln.target import Target

from .back_end import BackEnd
from .codegen.assembly import Assembly
from .plan.dependencies import dependencies
from .plan.program_plan import ProgramPlan, Step
from .schedule.attach import candidates_of, kernel_functions, schedule_of, work_of
from .schedule.choice import Candidate
from .schedule.cost import at_upper_bounds
from .schedule.opportunities import fusion_opportunities
from .schedule.record import shared_bytes
from .values import Value

HOST_NS, HOST_RATE = 1000, 20
"""Of something that the host does: nanoseconds to begin with, and bytes that it moves in one."""


class ProgramParts:
    """The parts of a program that follow from its scheduled module and its plan.

    The kernels have no code until `add_code`. `inner` maps the graph of a loop, and the number of values that it
    carries as a body, to the position of its compiled program. `carried` is that number for the graph itself.
    """

    def __init__(
        self,
        module: ir.Module,
        plan: ProgramPlan,
        graph: Graph,
        target: Target,
        back_end: BackEnd,
        inner: Callable[[Region, int], int],
        carried: int,
    ) -> None:
        self._inner, self._carried = inner, carried
        self.plan = plan
        self._functions = kernel_functions(module)
        self.graph, self.target, self.back_end = graph, target, back_end
        symbols = graph.symbolic_vars
        self._vars = tuple(Variable(name=each.name, min=each.min_val, max=each.max_val) for each in symbols)
        self._infos: dict[tuple[int, bool], BufferInfo] = {}
        self.kernels: list[ProgramSpec] = []
        self.operations: list[Operation] = []
        self.analysis: list[ItemAnalysis] = []
        for number, step in enumerate(self.plan.steps):
            self._add(number, step)

    def add_code(self, code_of: Mapping[str, str]) -> None:
        """Name the artifact of each kernel: `code_of` maps the name of its function to the artifact's SHA-256."""
        self.kernels = [kernel.model_copy(update={"artifact": code_of[str(kernel.entry)]}) for kernel in self.kernels]

    def add_assembly(self, assembly: Assembly, digest: str) -> None:
        """Add the assembled code of the kernels in it, and the resources of each."""
        usages = [assembly.usage.get(kernel.entry) for kernel in self.kernels]
        self.kernels = [
            kernel if usage is None else kernel.model_copy(update={"binary": digest, "resources": usage.resources})
            for kernel, usage in zip(self.kernels, usages, strict=True)
        ]
        for number, operation in enumerate(self.operations):
            if isinstance(operation, KernelItem) and (usage := usages[operation.kernel_id]) is not None:
                known = {"regs_per_thread": usage.registers, **self._residency(operation, usage.registers)}
                self.analysis[number] = self.analysis[number].model_copy(update=known)

    @property
    def inputs(self) -> tuple[Binding, ...]:
        bindings = self._bindings(self.graph.input_vars, self.plan.arguments)
        return tuple(
            binding.model_copy(update={"is_parameter": binding.buffer in self.plan.parameters}) for binding in bindings
        )

    @property
    def outputs(self) -> tuple[Binding, ...]:
        return self._bindings(self.graph.output_vars, self.plan.results)

    @property
    def offered(self) -> tuple[tuple[tuple[Candidate, ...], int], ...]:
        """For each kernel, the candidates of its schedule and the position of the picked one."""
        kernels = (step.kernel for step in self.plan.steps)
        return tuple(candidates_of(self._functions[kernel]) for kernel in kernels if kernel is not None)

    @property
    def in_place(self) -> tuple[int, ...]:
        """The positions of the carried inputs that the outputs at these positions are computed in."""
        pairs = zip(range(self._carried), self.plan.arguments, self.plan.results, strict=False)
        written = {self.plan.buffers[buffer].storage for step in self.plan.steps for buffer in step.writes}
        return tuple(
            at
            for at, taken, given in pairs
            if self.plan.buffers[taken].storage == self.plan.buffers[given].storage
            and self.plan.buffers[given].storage in written
        )

    @property
    def updates_in_place(self) -> bool:
        """Whether a carried input is overwritten, or a loop leaves its results in place of its operands."""
        return bool(self.in_place) or any(step.reuses for step in self.plan.steps if step.kernel is None)

    @property
    def prepare(self) -> tuple[int, ...]:
        return tuple(number for number, step in enumerate(self.plan.steps) if step.is_prepared)

    @property
    def schedule(self) -> Schedule:
        items = {number: item for number, item in enumerate(self.operations) if isinstance(item, KernelItem)}
        opportunities = fusion_opportunities(self.plan.steps, self.plan.buffers, items, self.graph)
        return Schedule.build(
            self.operations,
            dependencies(self.plan.steps, self.plan.buffers, self.graph.symbols),
            analysis=self.analysis,
            fusion_opportunities=opportunities,
        )

    def _bindings(self, variables: Sequence[int], buffers: Sequence[int]) -> tuple[Binding, ...]:
        pairs = ((var, self.plan.buffers[buffer]) for var, buffer in zip(variables, buffers, strict=True))
        return tuple(Binding(var=var, buffer=each.id, dtype=each.dtype, shape=each.shape) for var, each in pairs)

    def _add(self, number: int, step: Step) -> None:
        if step.kernel is not None:
            self._add_kernel(step, schedule_of(self._functions[step.kernel])[1])
        else:
            assert step.host is not None, "a step is a kernel or a host op"
            make = {"copy": self._transfer, "while": self._loop}.get(step.host.kind, self._callback)
            self.operations.append(make(step, step.host))
        self.analysis.append(self._estimate(number, step))

    def _add_kernel(self, step: Step, item: KernelItem) -> None:
        used = step.arguments
        name = f"kernel_{len(self.kernels)}"
        launch = self.back_end.launch(item)
        self.kernels.append(
            ProgramSpec(
                name=name,
                entry=step.entry,
                device=self.target.home_device,
                global_size=(launch.groups, 1, 1),
                local_size=None if launch.threads is None else (launch.threads, 1, 1),
                static_shared_bytes=launch.static_shared_bytes,
                dynamic_shared_bytes=launch.dynamic_shared_bytes,
                alignments=tuple(gcd(launch.alignment, self.plan.buffers[number].alignment) for number in used)
                if launch.alignment
                else (),
                vars=self._vars,
                var_names=tuple(each.name for each in self._vars),
                globals=tuple(range(len(used))),
                ins=step.loaded,
                outs=step.stored,
                buf_count=len(used),
                buffers=used,
            )
        )
        self.operations.append(
            item.model_copy(
                update={
                    "kernel_id": len(self.kernels) - 1,
                    "kernel_name": name,
                    "ops": tuple(OpRef(node=node, kind=self.graph.nodes[node].node) for node in step.nodes),
                    "inputs": tuple(self._info(buffer, is_input=True) for buffer in step.reads),
                    "outputs": tuple(self._info(buffer, is_input=False) for buffer in step.writes),
                }
            )
        )

    def _info(self, number: int, *, is_input: bool) -> BufferInfo:
        found = self._infos.get((number, is_input))
        if found is None:
            found = self._infos[number, is_input] = self._made_info(number, is_input)
        return found

    def _made_info(self, number: int, is_input: bool) -> BufferInfo:
        buffer = self.plan.buffers[number]
        allocation = Allocation(size_bytes=buffer.size_bytes, lifetime=buffer.lifetime, alias_group=buffer.alias_group)
        return BufferInfo(
            buf_var=number,
            dtype=buffer.dtype,
            layout=Layout.row_major(buffer.shape, alignment=buffer.alignment),
            alloc=allocation,
            is_input=is_input,
            is_output=not is_input,
        )

    def _transfer(self, step: Step, copy: Value) -> MemoryTransfer:
        buffer = self.plan.buffers[step.writes[0]]
        return MemoryTransfer(
            transfer_id=len(self.operations),
            src_var=step.reads[0],
            dst_var=step.writes[0],
            src_device=self.target.home_device,
            dst_device=copy.text("target_device"),
            dims=buffer.shape,
            size_bytes=buffer.size_bytes,
        )

    def _callback(self, step: Step, custom: Value) -> HostCallback:
        return HostCallback(
            callback_id=len(self.operations),
            callback_name=custom.text("op_name"),
            input_vars=step.reads,
            output_vars=step.writes,
            attributes=custom.fields["custom_attributes"],
        )

    def _loop(self, step: Step, loop: Value) -> Loop:
        return Loop(
            loop_id=len(self.operations),
            condition=self._inner(loop.fields["condition"], 0),
            body=self._inner(loop.fields["body"], len(step.writes)),
            input_vars=step.reads,
            output_vars=step.writes,
            most=loop.int("most"),
        )

    def _estimate(self, number: int, step: Step) -> ItemAnalysis:
        read = expr.add(*(self.plan.buffers[buffer].size_bytes for buffer in step.reads))
        written = expr.add(*(self.plan.buffers[buffer].size_bytes for buffer in step.writes))
        moves = ItemAnalysis(item_id=number, bytes_read=read, bytes_written=written)
        if step.kernel is None:
            moved = expr.bounds(expr.add(read, written), self.graph.symbols)[1]
            return moves.model_copy(update={"est_ns": HOST_NS + moved // HOST_RATE})
        function = self._functions[step.kernel]
        flops, estimate = work_of(function)
        known = self._residency(schedule_of(function)[1])
        return moves.model_copy(update={"flops": flops, "est_ns": estimate, **known})

    def _residency(self, item: KernelItem, registers: int = 0) -> dict[str, Any]:
        """The shared memory of a work-group, and the occupancy."""
        at = at_upper_bounds(self.graph.symbols)
        occupancy = self.back_end.machine.occupancy(item, at, registers)
        return {"smem_bytes": at(shared_bytes(item)), "occupancy": occupancy}
