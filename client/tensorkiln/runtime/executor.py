"""The calls of a program: arguments checked, a plan per binding of the symbols, blocks and frames reused."""

from __future__ import annotations

import ctypes
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import CallBoundsError, CallInputError
from ..expr import ExprError
from ..spec import Binding, CompiledProgram
from .arguments import InputSpec, accept, bind_symbols, check_constraints, input_specs
from .blocks import BlockPool
from .frame import Frame
from .loaded import LoadedProgram, load_program
from .memory import Array, Block, fresh_array
from .plan import Plan, make_plan
from .profile import ItemProfile, item_profile
from .threads import MAX_THREADS, available_processors

MAX_PLANS: Final = 64
"""Bindings of the symbols whose plans are kept, the least recently used going first."""

_MAX_FRAMES: Final = 16
"""Plans prepared in one block."""


class Executor:
    """A loaded program with some inputs fixed. Safe for several threads: each call has a block of its own."""

    def __init__(self, loaded: LoadedProgram, threads: int, pool: BlockPool, resident: Mapping[int, Array]) -> None:
        self._loaded = loaded
        self._threads = threads
        self._pool = pool
        self._resident = dict(resident)
        self._names = tuple(symbol.name for symbol in loaded.program.symbols)
        self._plans: OrderedDict[tuple[int, ...], Plan] = OrderedDict()
        self._lock = threading.Lock()
        self.measured_peak_bytes = 0

    @staticmethod
    def load(compiled: CompiledProgram, artifacts: Callable[[str], bytes], threads: int | None) -> Executor:
        """An executor with every input free."""
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be 1 or more, got {threads}")
        loaded = load_program(compiled, artifacts)
        count = min(threads or available_processors(), MAX_THREADS)
        return Executor(loaded, count, BlockPool(slack=bool(compiled.symbols)), {})

    @property
    def compiled(self) -> CompiledProgram:
        return self._loaded.program

    def bind(self, params: Mapping[int, Array]) -> Executor:
        """An executor with more inputs fixed; it shares code, constants and blocks with this one."""
        free = {binding.var: binding for binding in self.compiled.inputs if binding.var not in self._resident}
        resident = dict(self._resident)
        for var, array in params.items():
            if var not in free:
                raise CallInputError(f"var {var} is not a free input; those are {', '.join(map(str, free)) or 'none'}")
            position = self.compiled.inputs.index(free[var])
            (resident[var],), _ = accept([_loose_spec(free[var], position, np.shape(array))], [array])
        return Executor(self._loaded, self._threads, self._pool, resident)

    def run(self, arrays: Sequence[Any], symbols: Mapping[str, int]) -> tuple[Array, ...]:
        """Check, run, and return the outputs."""
        plan = self._plan(arrays, symbols)
        held, addresses = accept(plan.inputs, arrays)
        block = self._pool.take(plan.block_size)
        try:
            frame = self._frame(plan, block)
            results = self._execute(plan, frame, block, addresses)
        finally:
            self._pool.give(block)
        del held
        return results

    def profile(self, arrays: Sequence[Any], symbols: Mapping[str, int]) -> tuple[ItemProfile, ...]:
        """Like `run`, timing every step; the outputs are dropped."""
        plan = self._plan(arrays, symbols)
        held, addresses = accept(plan.inputs, arrays)
        block = self._pool.take(plan.block_size)
        spent: list[int] = []
        try:
            frame = self._frame(plan, block)
            self._execute(plan, frame, block, addresses, lambda step: spent.append(_timed(step)))
        finally:
            self._pool.give(block)
        del held
        return tuple(item_profile(step, ns) for step, ns in zip(plan.steps, spent, strict=True))

    def planned_peak_bytes(self, symbols: Mapping[str, int]) -> int:
        """Bytes that a call at `symbols` allocates."""
        return self._new_plan(bind_symbols(self.compiled.symbols, symbols), None).planned_bytes

    def _execute(
        self,
        plan: Plan,
        frame: Frame,
        block: Block,
        inputs: Sequence[int],
        around: Callable[[Callable[[], object]], object] | None = None,
    ) -> tuple[Array, ...]:
        results: list[Array] = []
        addresses: list[int] = []
        held = block.nbytes
        for output in plan.outputs:
            array, address, nbytes = fresh_array(output.shape, output.dtype, output.size)
            results.append(array)
            addresses.append(address)
            held += nbytes
        frame.aim(inputs, addresses)
        if around is None:
            for step in frame.steps:
                step()
        else:
            for step in frame.steps:
                around(step)
        for output, address in zip(plan.outputs, addresses, strict=True):
            if not output.is_fresh:
                ctypes.memmove(address, frame.locate(output.source), output.size)
        self.measured_peak_bytes = held + frame.transient_bytes
        return tuple(results)

    def _plan(self, arrays: Sequence[Any], symbols: Mapping[str, int]) -> Plan:
        """The plan of a call. A plan that is kept has its symbols in bounds and its constraints satisfied."""
        key = tuple(value for name in self._names if type(value := symbols.get(name)) is int)
        if len(key) != len(symbols):
            key = tuple(bind_symbols(self.compiled.symbols, symbols).values())
        with self._lock:
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
                return plan
        plan = self._new_plan(bind_symbols(self.compiled.symbols, symbols), arrays)
        with self._lock:
            self._plans[key] = plan
            if len(self._plans) > MAX_PLANS:
                self._plans.popitem(last=False)
        return plan

    def _new_plan(self, values: Mapping[str, int], arrays: Sequence[Any] | None) -> Plan:
        """The plan at `values`, for the free inputs `arrays` when they are given. Their errors come before its own."""
        try:
            specs = input_specs(self.compiled.inputs, values)
            free = tuple(spec for spec in specs if spec.var not in self._resident)
            if arrays is not None:
                accept(free, arrays)
            fixed = [spec for spec in specs if spec.var in self._resident]
            _, addresses = accept(fixed, [self._resident[spec.var] for spec in fixed])
            check_constraints(self.compiled.constraints, values)
            buffers = {binding.var: binding.buffer for binding in self.compiled.inputs}
            resident = {buffers[spec.var]: address for spec, address in zip(fixed, addresses, strict=True)}
            return make_plan(self._loaded, free, resident, values, self._threads)
        except ExprError as error:
            raise CallBoundsError(f"a size of the program has no value at {dict(values)}: {error}") from error

    @staticmethod
    def _frame(plan: Plan, block: Block) -> Frame:
        frame = block.frames.get(plan)
        if frame is None:
            if len(block.frames) >= _MAX_FRAMES:
                block.frames.clear()
            frame = block.frames[plan] = Frame(plan, block)
        return frame


def _loose_spec(binding: Binding, position: int, given: tuple[int, ...]) -> InputSpec:
    """What an array must be before the symbols are known: a symbolic size accepts the size that is given."""
    shape = tuple(dim if isinstance(dim, int) else None for dim in binding.shape)
    if len(given) == len(shape):
        shape = tuple(size if dim is None else dim for dim, size in zip(shape, given, strict=True))
    return InputSpec(binding.var, position, binding.dtype.numpy, shape)


def _timed(step: Callable[[], object]) -> int:
    start = time.perf_counter_ns()
    step()
    return time.perf_counter_ns() - start
