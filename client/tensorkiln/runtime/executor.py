"""Calls of a program on the host, with one plan per binding of the symbols, and with reused blocks and frames."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from ..errors import DeviceError
from ..spec import CompiledProgram
from .arguments import fixed_specs, input_specs, least_values
from .blocks import BlockPool
from .call_sizes import call_sizes
from .clock import Clock
from .crew import MAX_THREADS
from .frame import Frame
from .host_arrays import accept, accept_results
from .host_launch import HostLaunch, host_launches
from .item_profile import ItemProfile, Span, item_profile
from .layout import lay_out
from .loaded import LoadedProgram, load_program
from .loops import InnerPlans
from .memory import Array, Block, address_of, no_room
from .outline import Outline, require_inputs_kept
from .plan import Plan, make_plan, named_output
from .plans import Plans, Specs
from .short_calls import ShortCalls
from .threads import available_processors

_MAX_FRAMES: Final = 16
"""The most plans prepared in one block."""


class Executor:
    """A phase of a program with some inputs fixed. Thread-safe: each call has a block of its own."""

    def __init__(
        self,
        loaded: LoadedProgram,
        outline: Outline,
        threads: int,
        pools: tuple[BlockPool, BlockPool],
        resident: Mapping[int, Array],
    ) -> None:
        self._loaded = loaded
        self._outline = outline
        self._threads = threads
        self._pool, self._results = pools
        self._resident = dict(resident)
        plan = partial(_plan, loaded, outline, threads, self._resident)
        self._plans = Plans(loaded.program, outline.phase, tuple(self._resident), plan)
        self.measured_peak_bytes = 0
        self._short: ShortCalls | None = None
        self._runs = 0

    @staticmethod
    def load(compiled: CompiledProgram, artifacts: Callable[[str], bytes], threads: int | None) -> Executor:
        """An executor with every input free."""
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be 1 or more, got {threads}")
        require_inputs_kept(compiled)
        loaded = load_program(compiled, artifacts)
        count = min(threads or available_processors(), MAX_THREADS)
        # The results of one call may still be held while the next one runs.
        results = BlockPool(slack=False, max_idle=len(compiled.outputs) + 1)
        pools = BlockPool(slack=bool(compiled.symbols)), results
        return Executor(loaded, loaded.outlines.whole, count, pools, {})

    @property
    def compiled(self) -> CompiledProgram:
        return self._loaded.program

    @property
    def bound(self) -> tuple[int, ...]:
        """The vars of the graph's inputs that are bound to arrays."""
        return tuple(var for var in self._resident if var >= 0)

    def given(self) -> Mapping[int, Array]:
        """The bound arrays by var."""
        return {var: self._resident[var] for var in self.bound}

    def bind(self, params: Mapping[int, Array]) -> Executor:
        """An executor with more inputs fixed; it shares code, constants and blocks with this one.

        Once all parameters are bound, the items that depend only on them run, now.
        """
        resident = dict(self._resident)
        shapes = {var: np.shape(array) for var, array in params.items()}
        for var, spec in fixed_specs(self.compiled.inputs, resident, shapes).items():
            (resident[var],), _ = accept([spec], [params[var]])
        return self._of(self._outline, resident)._prepared()

    def _of(self, outline: Outline, resident: Mapping[int, Array]) -> Executor:
        return Executor(self._loaded, outline, self._threads, (self._pool, self._results), resident)

    def _prepared(self) -> Executor:
        phases = self._loaded.outlines.phases(self._resident)
        if phases is None or self._outline is not self._loaded.outlines.whole:
            return self
        prepare, call = phases
        given = {binding.var: self._resident[binding.var] for binding in prepare.phase.inputs}
        made = self._of(prepare, given).run((), least_values(self.compiled.symbols))
        kept = {binding.var: array for binding, array in zip(prepare.phase.outputs, made, strict=True)}
        return self._of(call, {**self._resident, **kept})

    def on(self, stream: object) -> Executor:
        """DeviceError: a CPU has no streams."""
        raise DeviceError(f"the program is for the CPU and cannot run on the stream {stream!r}")

    def run(self, arrays: Sequence[Any], symbols: Mapping[str, int]) -> tuple[Array, ...]:
        """Check the arguments, run, and return the outputs."""
        short = self._short or self._made_short()
        if short is not None and (made := short.run(arrays, symbols)) is not None:
            self.measured_peak_bytes = short.held_bytes
            return made
        return self._run(arrays, symbols)

    def run_into(self, out: Sequence[Any], arrays: Sequence[Any], symbols: Mapping[str, int]) -> None:
        """Check the arguments, run, and write the outputs to the arrays in `out`."""
        self._run(arrays, symbols, out)

    def _run(
        self, arrays: Sequence[Any], symbols: Mapping[str, int], out: Sequence[Any] | None = None
    ) -> tuple[Array, ...]:
        plan = self._plans.find(symbols) or self._plans.make(symbols, lambda specs: accept(specs, arrays))
        held, addresses = accept(plan.inputs, arrays)
        given = None if out is None else accept_results(plan.outputs, out, [*held, *self._resident.values()])
        block = self._pool.take(plan.block_size)
        try:
            results = self._execute(plan, self._frame(plan, block), block, addresses, given)
        finally:
            self._pool.give(block)
        del held
        return results

    def _made_short(self) -> ShortCalls | None:
        """Short calls, built at the second call; None before that, and for programs without them."""
        runs = self._runs = self._runs + 1
        if runs != 2:
            return None
        loaded = self._loaded
        sizes = call_sizes(self._outline, loaded.kernels, loaded.constants, self._resident, self._threads)
        if sizes is not None:
            self._short = ShortCalls.of(self.compiled, sizes, (self._pool, self._results))
        return self._short

    def profile(self, arrays: Sequence[Any], symbols: Mapping[str, int]) -> tuple[ItemProfile, ...]:
        """Like `run`, timing every step; the outputs are dropped."""
        plan = self._plans.find(symbols) or self._plans.make(symbols, lambda specs: accept(specs, arrays))
        held, addresses = accept(plan.inputs, arrays)
        block = self._pool.take(plan.block_size)
        spent: list[tuple[int, int, tuple[Span, ...]]] = []
        clock = Clock()
        try:
            frame = self._frame(plan, block)
            self._execute(plan, frame, block, addresses, around=lambda step: spent.append(clock.timed(step)))
        finally:
            self._pool.give(block)
        del held
        return tuple(
            item_profile(step, ns, start, spans) for step, (start, ns, spans) in zip(plan.steps, spent, strict=True)
        )

    def peak(self) -> None:
        """None: the host does not say how fast it is, and is measured."""

    def planned_peak_bytes(self, symbols: Mapping[str, int]) -> int:
        """Bytes that a call at `symbols` allocates."""
        return self._plans.new(symbols).planned_bytes

    def _execute(
        self,
        plan: Plan[HostLaunch],
        frame: Frame,
        block: Block,
        inputs: Sequence[int],
        given: Sequence[int] | None = None,
        around: Callable[[Callable[[], object]], object] | None = None,
    ) -> tuple[Array, ...]:
        """Run the steps and return the results that were allocated.

        `given` are addresses to write results to. A result that needs more bytes than its elements is allocated anyway,
        then copied there.
        """
        results: list[Array] = []
        addresses: list[int] = []
        copied: list[tuple[int, int, int]] = []
        held = block.nbytes
        for position, output in enumerate(plan.outputs):
            if given is not None:
                if output.size == output.nbytes:
                    addresses.append(given[position])
                    continue
                copied.append((given[position], position, output.nbytes))
            try:
                array, address, nbytes = self._results.array(output.shape, output.dtype, output.size)
            except MemoryError as error:
                raise no_room(named_output(self._outline.phase, position), output.size) from error
            results.append(array)
            addresses.append(address)
            held += nbytes
        frame.transient_bytes = 0
        frame.aim(tuple(inputs), tuple(addresses))
        if around is None:
            frame.run_steps()
        else:
            for step in frame.steps:
                around(step)
        frame.give()
        for address, position, nbytes in copied:
            ctypes.memmove(address, addresses[position], nbytes)
        self.measured_peak_bytes = held + frame.transient_bytes
        return tuple(results)

    @staticmethod
    def _frame(plan: Plan[HostLaunch], block: Block) -> Frame:
        frame = block.frames.get(plan)
        if frame is None:
            if len(block.frames) >= _MAX_FRAMES:
                block.frames.clear()
            frame = block.frames[plan] = Frame(plan, block.address)
        return frame


def _plan(
    loaded: LoadedProgram,
    outline: Outline,
    threads: int,
    resident: Mapping[int, Array],
    free: Specs,
    fixed: Specs,
    symbols: Mapping[str, int],
) -> Plan[HostLaunch]:
    _, addresses = accept(fixed, [resident[spec.var] for spec in fixed])
    buffers = {binding.var: binding.buffer for binding in outline.phase.inputs}
    known = {buffers[spec.var]: address for spec, address in zip(fixed, addresses, strict=True)}
    known |= {buffer_id: address_of(array) for buffer_id, array in loaded.constants.items()}
    inner = partial(inner_plans, loaded, threads, symbols)
    return make_plan(lay_out(outline, symbols), free, known, host_launches(loaded.kernels, threads), inner)


def inner_plans(
    outer: LoadedProgram, threads: int, symbols: Mapping[str, int], number: int
) -> InnerPlans[Plan[HostLaunch]]:
    """The plans of an inner program, whose inputs are all free."""
    loaded = outer.inner[number]
    whole, prepare, call = loaded.outlines.whole, loaded.outlines.prepare, loaded.outlines.call

    def plan(outline: Outline) -> Plan[HostLaunch]:
        return _plan(loaded, outline, threads, {}, input_specs(outline.phase.inputs, symbols), (), symbols)

    if prepare is None or call is None:
        return InnerPlans(plan(whole))
    places = {binding.var: place for place, binding in enumerate(loaded.program.inputs)}
    return InnerPlans(plan(call), plan(prepare), tuple(places[binding.var] for binding in prepare.phase.inputs))
