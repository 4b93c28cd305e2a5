"""The sizes of a call as functions of the symbols: a plan whose numbers are computed at each binding.

The sizes equal those of `make_plan`. They cover calls that machine code can do: only kernels, each on one thread, and
results that the kernels write in place. At any other binding, and where a plan would be an error, the function gives
None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from ..expr import ExprError, free_symbols, product
from ..expr.size_function import SizeFunction, Value
from ..infer import Constraint
from ..schedule import HostCallback, KernelItem, Loop, MemoryTransfer
from . import host_launch
from .arena import Arena
from .cpu import CpuKernel
from .memory import ALIGNMENT, Array, address_of, is_plain
from .outline import Outline
from .storage import StorageKind

MOST_TEMPORARIES: Final = 4 << 20
"""Bytes of temporaries: in a larger call the interpreter's overhead does not matter."""


@dataclass(frozen=True, slots=True)
class ArraySizes:
    """An array of a call; `size` is the number of bytes to allocate for a result."""

    dtype: np.dtype[Any]
    dims: tuple[Value, ...]
    size: Value = 0


@dataclass(frozen=True, slots=True)
class Argument:
    """`offset` bytes into the array number `index` of the call; for the base "memory", the address itself."""

    base: Literal["memory", "input", "output"]
    offset: Value
    index: int = 0


@dataclass(frozen=True, slots=True)
class LaunchSizes:
    """A launch of a kernel; zero work-groups when there is nothing to launch."""

    kernel: CpuKernel
    arguments: tuple[Argument, ...]
    values: tuple[Value, ...]
    groups: Value


@dataclass(frozen=True)
class CallSizes:
    """Sizes as values of `function`, whose parameter is the address of a block of at least `block_size` bytes.

    `held` is the total of bytes that a call holds.
    """

    function: SizeFunction
    inputs: tuple[ArraySizes, ...]
    outputs: tuple[ArraySizes, ...]
    launches: tuple[LaunchSizes, ...]
    block_size: Value
    held: Value


def call_sizes(
    outline: Outline,
    kernels: Sequence[CpuKernel],
    constants: Mapping[int, Array],
    resident: Mapping[int, Array],
    threads: int,
) -> CallSizes | None:
    """The sizes of a phase with the inputs `resident` fixed, by var; `constants` are by buffer id.

    None when machine code cannot do the calls at any binding.
    """
    try:
        return _Sizes(outline, kernels, constants, resident, threads).all()
    except (_NeverError, ExprError):
        return None


class _NeverError(Exception):
    """Machine code can do no call of the phase."""


@dataclass
class _Sizes:
    outline: Outline
    kernels: Sequence[CpuKernel]
    constants: Mapping[int, Array]
    resident: Mapping[int, Array]
    threads: int
    function: SizeFunction = field(init=False)
    offsets: dict[int, Value] = field(init=False, default_factory=dict[int, Value])
    claims: dict[int, int] = field(init=False, default_factory=dict[int, int])

    def all(self) -> CallSizes:
        self.function = SizeFunction(self.outline.program.symbol_ranges, ("block",))
        inputs = self._inputs()
        self._check_constraints(self.outline.phase.constraints)
        outputs = tuple(self._output(position) for position in range(len(self.outline.phase.outputs)))
        scratch = self._placed("scratch", 0)
        block_size = self.function.sum(scratch, self._placed("writable", scratch))
        self.function.require_at_most(block_size, MOST_TEMPORARIES)
        launches = tuple(made for item_id in self.outline.phase.items for made in self._launches(item_id))
        taken = [self.function.sum(output.size, ALIGNMENT) for output in outputs]
        held = self.function.sum(block_size, ALIGNMENT, *taken)
        return CallSizes(self.function, inputs, outputs, launches, block_size, held)

    def _inputs(self) -> tuple[ArraySizes, ...]:
        free: list[ArraySizes] = []
        for binding in self.outline.phase.inputs:
            dims = self._dims(binding.shape)
            array = self.resident.get(binding.var)
            if array is None:
                free.append(ArraySizes(binding.dtype.numpy, dims))
                continue
            if array.dtype != binding.dtype.numpy or array.ndim != len(dims) or not is_plain(array):
                raise _NeverError
            for dim, size in zip(dims, array.shape, strict=True):
                self.function.require_equal(dim, size)
        return tuple(free)

    def _dims(self, shape: Sequence[Any]) -> tuple[Value, ...]:
        dims = tuple(map(self.function.of, shape))
        for dim in dims:
            self.function.require_at_most(0, dim)
        return dims

    def _check_constraints(self, constraints: Sequence[Constraint]) -> None:
        for constraint in constraints:
            left, right = self.function.of(constraint.left), self.function.of(constraint.right)
            if constraint.kind == "eq":
                self.function.require_equal(left, right)
            else:
                self.function.require_at_most(right, left)

    def _output(self, position: int) -> ArraySizes:
        """The sizes of a result; claims its storage, which the result must cover completely."""
        outline, function = self.outline, self.function
        buffer = outline.program.buffers[outline.phase.outputs[position].buffer]
        key = outline.storage_of[buffer.id]
        if outline.storages[key].kind != "writable" or self.claims.setdefault(key, position) != position:
            raise _NeverError
        start, end = self._span(buffer.id)
        function.require_equal(start, 0)
        function.require_equal(end, self._extent(key))
        function.require_at_most(self._window_bytes(buffer.id), function.of(buffer.size_bytes))
        return ArraySizes(buffer.dtype.numpy, self._dims(buffer.shape), end)

    def _span(self, buffer_id: int) -> tuple[Value, Value]:
        """The first byte of a buffer and the one after its last, as in `span_of`: an empty window is at 0."""
        buffer, function = self.outline.program.buffers[buffer_id], self.function
        size = function.of(buffer.size_bytes)
        start = function.where(size, function.of(buffer.offset))
        function.require_at_most(0, size)
        function.require_at_most(0, start)
        return start, function.sum(start, size)

    def _extent(self, key: int) -> Value:
        return self.function.greatest(*(self._span(member.id)[1] for member in self.outline.storages[key].members))

    def _window_bytes(self, buffer_id: int) -> Value:
        buffer = self.outline.program.buffers[buffer_id]
        self._dims(buffer.shape)
        return self.function.of(product((*buffer.shape, buffer.dtype.itemsize)))

    def _placed(self, kind: StorageKind, start: Value) -> Value:
        """Place the storages of a kind in the block, from `start` on, and return their bytes."""
        function = self.function
        keys = [
            key for key, storage in enumerate(self.outline.storages) if storage.kind == kind and key not in self.claims
        ]
        extents = [self._extent(key) for key in keys]
        arena = Arena([(self.outline.storages[key].first, self.outline.storages[key].last) for key in keys])
        most = sum(function.most(extent) + ALIGNMENT for extent in extents)
        *offsets, size = function.call(arena.place, extents, len(keys) + 1, most)
        for key, offset in zip(keys, offsets, strict=True):
            self.offsets[key] = function.sum(function.parameter("block"), start, offset)
        return size

    def _launches(self, item_id: int) -> list[LaunchSizes]:
        match self.outline.program.schedule.items[item_id].operation:
            case KernelItem() as operation:
                return [self._launch(item_id, operation)]
            case MemoryTransfer() | HostCallback() | Loop():
                raise _NeverError
            case _:
                return []

    def _launch(self, item_id: int, operation: KernelItem) -> LaunchSizes:
        spec, function = self.outline.program.kernels[operation.kernel_id], self.function
        self._check_variables(operation.kernel_id)
        groups, *others = map(function.of, spec.global_size)
        for other in others:
            function.require_equal(other, 1)
        for size in (groups, *map(function.of, spec.local_size or ())):
            function.require_at_most(1, size)
        worth = function.quotient(self._work_ns(item_id), host_launch.NS_PER_WORKER)
        function.require_at_most(function.least(self.threads, groups, worth), 1)
        for threads in operation.context.global_dims:
            groups = function.where(function.of(threads), groups)
        arguments = tuple(self._argument(buffer_id) for buffer_id in spec.buffers)
        values = tuple(function.symbol(name) for name in spec.var_names)
        return LaunchSizes(self.kernels[operation.kernel_id], arguments, values, groups)

    def _check_variables(self, kernel_id: int) -> None:
        """Require the kernel's bounds of the symbols in its launch sizes."""
        spec = self.outline.program.kernels[kernel_id]
        used = frozenset[str]().union(*map(free_symbols, (*spec.global_size, *(spec.local_size or ()))))
        for variable in spec.vars:
            if variable.name in used:
                self.function.require_between(variable.min, self.function.symbol(variable.name), variable.max)

    def _work_ns(self, item_id: int) -> Value:
        """Estimated nanoseconds on one core, as in `host_launch`: the compiler's estimate, else by bytes."""
        program, function = self.outline.program, self.function
        if program.schedule.analysis and (analysis := program.schedule.analysis[item_id]).est_ns:
            work = [function.of(dim) for dim in analysis.work]
            if not (most := analysis.most_work(program.symbol_ranges)):
                return analysis.est_ns
            if most < 0:
                raise _NeverError
            return function.quotient(function.scaled(function.sum(*work), analysis.est_ns), most)
        operation = program.schedule.items[item_id].operation
        assert isinstance(operation, KernelItem)
        buffers = set(program.kernels[operation.kernel_id].buffers)
        return function.quotient(function.sum(*map(self._window_bytes, buffers)), host_launch.BYTES_PER_NS)

    def _argument(self, buffer_id: int) -> Argument:
        key = self.outline.storage_of[buffer_id]
        storage, function = self.outline.storages[key], self.function
        start, end = self._span(buffer_id)
        match storage.kind:
            case "scratch":
                return Argument("memory", self.offsets[key])
            case "constant" | "input":
                function.require_at_most(end, self._window_bytes(storage.anchor.id))
                return self._given(storage.anchor.id, start)
            case "writable":
                if key in self.claims:
                    return Argument("output", start, self.claims[key])
                return Argument("memory", function.sum(self.offsets[key], start))

    def _given(self, anchor: int, start: Value) -> Argument:
        """The address of a constant, a fixed input or an input of the call."""
        if anchor in self.constants:
            return Argument("memory", self.function.sum(address_of(self.constants[anchor]), start))
        var = self.outline.var_of_input[anchor]
        if var in self.resident:
            return Argument("memory", self.function.sum(address_of(self.resident[var]), start))
        free = [binding.var for binding in self.outline.phase.inputs if binding.var not in self.resident]
        return Argument("input", start, free.index(var))
