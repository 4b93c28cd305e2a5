"""Calls of a program on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from ...errors import DeviceError
from ...schedule import Loop
from ...spec import CompiledProgram
from ..arguments import InputSpec, fixed_specs, input_specs, least_values, mismatch
from ..item_profile import ItemProfile
from ..layout import Layout, lay_out
from ..loops import InnerPlans, block_bytes, inner_loops
from ..machine import Machine
from ..outline import Outline, require_inputs_kept
from ..plan import Plan, make_plan, named_output
from ..plans import Plans, Specs
from .array import DeviceArray
from .calls import Call
from .context import Context
from .driver import ALIGNMENT, Driver, OutOfDeviceMemoryError
from .frame import Frame
from .launches import DeviceLaunch, demanded_alignments, device_launches, require_aligned_loops
from .loaded import CudaProgram, Lane, load_program
from .memory import DeviceBlock
from .operands import DeviceOperand, Operand, operands_of
from .resident import make_resident
from .streams import Stream
from .timing import run_timed

_MAX_FRAMES: Final = 16
"""The most plans prepared in one block."""


@dataclass(frozen=True, eq=False)
class CudaPlan:
    """A plan, and the alignment in bytes that each free input must have."""

    plan: Plan[DeviceLaunch]
    alignments: tuple[int, ...]


class CudaExecutor:
    """A phase of a program with some inputs fixed, on the program's stream or another. Thread-safe."""

    def __init__(
        self,
        loaded: CudaProgram,
        outline: Outline,
        resident: Mapping[int, DeviceOperand],
        lane: Lane | None = None,
    ) -> None:
        self._loaded = loaded
        self._outline = outline
        self._resident = dict(resident)
        fixed = tuple(self._resident)
        # Functions, not bound methods: without a reference cycle, memory is freed together with the executor.
        self._plans = Plans(loaded.program, outline.phase, fixed, partial(_plan, loaded, outline, self._resident))
        self._layouts = Plans(loaded.program, outline.phase, fixed, partial(_layout, outline))
        self._lane = lane
        self.measured_peak_bytes = 0

    @staticmethod
    def load(compiled: CompiledProgram, artifacts: Callable[[str], bytes], device: int | Driver | None) -> CudaExecutor:
        """An executor with every input free."""
        require_inputs_kept(compiled)
        loaded = load_program(compiled, artifacts, device)
        return CudaExecutor(loaded, loaded.outlines.whole, {})

    @property
    def compiled(self) -> CompiledProgram:
        return self._loaded.program

    @property
    def bound(self) -> tuple[int, ...]:
        """The vars of the graph's inputs that are bound to arrays."""
        return tuple(var for var in self._resident if var >= 0)

    def given(self) -> Mapping[int, Any] | None:
        """Empty; None when arrays are bound or a stream is chosen, since both belong to this process."""
        return None if self._resident or self._lane is not None else {}

    def bind(self, params: Mapping[int, Any]) -> CudaExecutor:
        """An executor with more inputs fixed, in device memory; it shares everything else with this one.

        Once all parameters are bound, the items that depend only on them run, now.
        """
        session = self._loaded.session()
        specs = fixed_specs(self.compiled.inputs, self._resident, dict.fromkeys(params))
        with session.context.driver.scope():
            added = make_resident(self.compiled, session, specs, params)
        return self._of(self._outline, {**self._resident, **added})._prepared()

    def on(self, stream: object) -> CudaExecutor:
        """An executor whose calls put their work on `stream`."""
        given = Stream.of(stream)
        lane = self._loaded.lane(self._loaded.session().context, given)
        chosen = CudaExecutor(self._loaded, self._outline, self._resident, lane)
        chosen._plans = self._plans
        return chosen

    def _of(self, outline: Outline, resident: Mapping[int, DeviceOperand]) -> CudaExecutor:
        return CudaExecutor(self._loaded, outline, resident, self._lane)

    def _prepared(self) -> CudaExecutor:
        phases = self._loaded.outlines.phases(self._resident)
        if phases is None or self._outline is not self._loaded.outlines.whole:
            return self
        prepare, call = phases
        given = {binding.var: self._resident[binding.var] for binding in prepare.phase.inputs}
        made = self._of(prepare, given).run((), least_values(self.compiled.symbols))
        arrays = {binding.var: array for binding, array in zip(prepare.phase.outputs, made, strict=True)}
        session = self._loaded.session()
        specs = fixed_specs(call.phase.inputs, self._resident, dict.fromkeys(arrays))
        with session.context.driver.scope():
            kept = make_resident(self.compiled, session, specs, arrays)
        read = call.phase.reads(self.compiled)
        # Drop the references to arrays that no call reads any more, so that their memory can be freed.
        fixed = {
            var: operand if var in read else replace(operand, owner=None, block=None)
            for var, operand in self._resident.items()
        }
        return self._of(call, {**fixed, **kept})

    def run(self, arrays: Sequence[Any], symbols: Mapping[str, int]) -> tuple[DeviceArray, ...]:
        """Check the arguments, start the work, and return the outputs, which may not be complete yet."""

        def start(plan: Plan[DeviceLaunch], frame: Frame, stream: Stream) -> None:
            for step in frame.steps:
                step(stream.handle)

        return self._call(arrays, symbols, start)

    def run_into(self, out: Sequence[Any], arrays: Sequence[Any], symbols: Mapping[str, int]) -> None:
        """DeviceError: results stay in GPU memory, in blocks of this executor."""
        raise DeviceError("the program is for a GPU and writes no arrays of its caller; call it, and copy the results")

    def profile(self, arrays: Sequence[Any], symbols: Mapping[str, int]) -> tuple[ItemProfile, ...]:
        """Like `run`, timing every step on the device; the outputs are dropped."""
        profiles: list[ItemProfile] = []
        context = self._loaded.session().context

        def start(plan: Plan[DeviceLaunch], frame: Frame, stream: Stream) -> None:
            profiles.extend(run_timed(context, plan.steps, frame.steps, stream))

        self._call(arrays, symbols, start)
        return tuple(profiles)

    def peak(self) -> Machine | None:
        """What the GPU moves and computes at most."""
        return self._loaded.session().context.driver.properties.peak

    def planned_peak_bytes(self, symbols: Mapping[str, int]) -> int:
        """Bytes of device memory that a call at `symbols` allocates when all its arrays come from the host."""
        layout = self._layouts.new(symbols)
        outline = layout.outline
        results = sum(layout.result_bytes(position) for position in range(len(outline.phase.outputs)))
        uploads = sum(
            layout.window_bytes(binding.buffer) for binding in outline.phase.inputs if binding.var not in self._resident
        )
        return _block_bytes(self._loaded, layout) + results + uploads

    def _call(
        self,
        arrays: Sequence[Any],
        symbols: Mapping[str, int],
        start: Callable[[Plan[DeviceLaunch], Frame, Stream], None],
    ) -> tuple[DeviceArray, ...]:
        session = self._loaded.session()
        context, lane = session.context, self._lane or session.lane
        operands: list[Operand] = []

        def check(specs: Sequence[InputSpec]) -> None:
            operands.extend(operands_of(specs, arrays, context, lane.stream))

        with context.driver.scope():
            planned = self._plans.find(symbols)
            if planned is None:
                planned = self._plans.make(symbols, check)
            else:
                check(planned.plan.inputs)
            call = Call(context, lane.stream)
            try:
                return self._run(context, lane, planned, operands, call, start)
            except BaseException:
                with suppress(DeviceError):
                    call.abandon()
                raise

    def _run(
        self,
        context: Context,
        lane: Lane,
        planned: CudaPlan,
        operands: Sequence[Operand],
        call: Call,
        start: Callable[[Plan[DeviceLaunch], Frame, Stream], None],
    ) -> tuple[DeviceArray, ...]:
        plan, stream = planned.plan, lane.stream
        inputs = call.place(plan.inputs, operands, planned.alignments)
        block = call.take(lane.arenas, plan.block_size, "the temporaries of a call take")
        frame = self._frame(plan, block, context)
        results = [self._result(context, position, output.size, stream) for position, output in enumerate(plan.outputs)]
        frame.slots.aim(tuple(inputs), tuple(block.address for block in results))
        start(plan, frame, stream)
        frame.give([block.address for block in results], stream.handle)
        kept = [operand.block for operand in self._resident.values() if operand.block is not None]
        done = call.end(operands, [*results, *kept])
        self.measured_peak_bytes = call.held_bytes + sum(block.size for block in results)
        return tuple(
            DeviceArray(context, (block, context.results), output.dtype, output.shape, done)
            for output, block in zip(plan.outputs, results, strict=True)
        )

    def _result(self, context: Context, position: int, size: int, stream: Stream) -> DeviceBlock:
        try:
            block = context.results.take(size)
        except OutOfDeviceMemoryError as error:
            raise error.on_behalf_of(named_output(self._outline.phase, position), size) from error
        block.prepare(stream)
        return block

    @staticmethod
    def _frame(plan: Plan[DeviceLaunch], block: DeviceBlock, context: Context) -> Frame:
        frame = block.frames.get(plan)
        if frame is None:
            if len(block.frames) >= _MAX_FRAMES:
                block.frames.clear()
            frame = block.frames[plan] = Frame(plan, block.address, context)
        return frame


def _plan(
    loaded: CudaProgram,
    outline: Outline,
    resident: Mapping[int, DeviceOperand],
    free: Specs,
    fixed: Specs,
    symbols: Mapping[str, int],
) -> CudaPlan:
    session = loaded.session()
    buffers = {binding.var: binding.buffer for binding in outline.phase.inputs}
    known = {buffer_id: block.address for buffer_id, block in session.constants.items()}
    for spec in fixed:
        operand = resident[spec.var]
        if operand.shape != spec.shape:
            raise mismatch(spec, operand.dtype, operand.shape)
        known[buffers[spec.var]] = operand.address
    inner = partial(_inner_plans, loaded, symbols)
    plan = make_plan(_layout(outline, free, fixed, symbols), free, known, device_launches(session), inner)
    require_aligned_loops(plan)
    return CudaPlan(plan, demanded_alignments(plan))


def _inner_plans(outer: CudaProgram, symbols: Mapping[str, int], number: int) -> InnerPlans[Plan[DeviceLaunch]]:
    """The plan of an inner program, whose inputs are all free: everything runs at each turn."""
    loaded = outer.inner[number]
    outline = loaded.outlines.whole
    return InnerPlans(_plan(loaded, outline, {}, input_specs(outline.phase.inputs, symbols), (), symbols).plan)


def _block_bytes(loaded: CudaProgram, layout: Layout) -> int:
    """Bytes of a call's temporaries with room for its loops: its plan's `block_size`, computed without a device."""
    operations = [loaded.program.schedule.items[item].operation for item in layout.outline.phase.items]
    loops = inner_loops(operations)
    blocks = {
        number: _block_bytes(
            loaded.inner[number], lay_out(loaded.inner[number].outlines.whole, layout.symbols, ALIGNMENT)
        )
        for loop in loops
        for number in (loop.condition, loop.body)
    }

    def moving(loop: Loop) -> list[int]:
        in_place = loaded.inner[loop.body].program.in_place
        sizes = map(layout.window_bytes, loop.output_vars)
        return [0 if place in in_place else size for place, size in enumerate(sizes)]

    return block_bytes(layout.arena.size, loops, blocks, moving)


def _layout(outline: Outline, free: Specs, fixed: Specs, symbols: Mapping[str, int]) -> Layout:
    return lay_out(outline, symbols, ALIGNMENT)
