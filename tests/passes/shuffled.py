"""Run a compiled program in an order of its own: what only the edges and the storages of the program promise.

Items run in a random order that respects the dependencies, and the work-groups of a kernel one by one in a random
order, on storages that lie apart between guarded borders. So whatever two items, or two work-groups, do to each other's
data comes out wrong.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from passes.compile import Compilation
from tensorkiln.buffers import Buffer
from tensorkiln.custom import lookup
from tensorkiln.expr import evaluate
from tensorkiln.runtime.cpu import CpuKernel, load_kernels
from tensorkiln.runtime.phases import whole
from tensorkiln.runtime.storage import Storage, resolve_storages
from tensorkiln.schedule import HostCallback, KernelItem, Loop, MemoryTransfer, Schedule
from tensorkiln.spec import CompiledProgram
from tensorkiln.spec.checks import accesses

Array = np.ndarray[Any, Any]

BORDER = 128
JUNK = 0xAB


def random_order(schedule: Schedule, rng: np.random.Generator) -> list[int]:
    """Item ids in a random order in which every item follows those that it depends on."""
    waiting = [set(item.depends_on) for item in schedule.items]
    order: list[int] = []
    while len(order) < len(waiting):
        ready = [number for number, left in enumerate(waiting) if not left and number not in order]
        order.append(int(rng.choice(ready)))
        for left in waiting:
            left.discard(order[-1])
    return order


def renumbered(program: CompiledProgram, order: Sequence[int]) -> CompiledProgram:
    """The program with its items numbered in this order, and every buffer alive from its first use to its last."""
    old, place = program.schedule, {item: number for number, item in enumerate(order)}
    edges = [
        edge.model_copy(update={"dep_from": place[edge.dep_from], "dep_to": place[edge.dep_to]})
        for edge in old.dependencies
    ]
    schedule = Schedule.build(
        [old.items[item].operation for item in order],
        edges,
        analysis=[old.analysis[item].model_copy(update={"item_id": number}) for number, item in enumerate(order)],
    )
    uses: dict[int, list[int]] = {buffer.id: [] for buffer in program.buffers}
    for item in schedule.items:
        for buffer in sum(accesses(item, program.kernels), ()):
            uses[buffer].append(item.item_id)
    last = max(len(order) - 1, 0)
    for binding in (*program.inputs, *program.outputs):
        uses[binding.buffer].append(last)
    buffers = tuple(
        buffer.model_copy(update={"lifetime": (min(used, default=last), max(used, default=last))})
        for buffer, used in zip(program.buffers, uses.values(), strict=True)
    )
    return program.model_copy(update={"schedule": schedule, "buffers": buffers})


@dataclass(frozen=True, slots=True)
class _Memory:
    """`size` bytes between borders, junk at first."""

    size: int
    content: Array = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", np.full(self.size + 2 * BORDER + 64, JUNK, np.uint8))

    @property
    def _first(self) -> int:
        return BORDER + (-(self.content.ctypes.data + BORDER)) % 64

    @property
    def address(self) -> int:
        return self.content.ctypes.data + self._first

    def bytes(self, offset: int, size: int) -> Array:
        return self.content[self._first + offset :][:size]

    def check(self) -> None:
        """AssertionError when something wrote to a border."""
        assert (self.content[: self._first] == JUNK).all(), "written before the storage"
        assert (self.content[self._first + self.size :] == JUNK).all(), "written behind the storage"


class ShuffledCall:
    """One call of a program, its order drawn from `rng`."""

    def __init__(
        self, compilation: Compilation, arrays: Sequence[Any], symbols: dict[str, int], rng: np.random.Generator
    ) -> None:
        self.compilation, self.program, self.symbols, self.rng = compilation, compilation.program, symbols, rng
        self.kernels = load_kernels(self.program, compilation.artifacts.__getitem__)
        self.memories: dict[int, tuple[_Memory, int]] = {}
        given = {
            binding.buffer: np.ascontiguousarray(array)
            for binding, array in zip(self.program.inputs, arrays, strict=True)
        }
        given |= {
            buffer.id: np.frombuffer(compilation.artifacts[buffer.artifact], np.uint8)
            for buffer in self.program.buffers
            if buffer.artifact is not None
        }
        self.given = given
        for storage in resolve_storages(self.program, whole(self.program)):
            self._place(storage)

    def _place(self, storage: Storage) -> None:
        memory = _Memory(storage.extent(self.symbols))
        for buffer in storage.members:
            self.memories[buffer.id] = (memory, evaluate(buffer.offset, self.symbols))
        if storage.anchor.id in self.given:
            contents = self.given[storage.anchor.id].reshape(-1).view(np.uint8)
            memory.bytes(0, contents.size)[:] = contents

    def run(self) -> tuple[Array, ...]:
        """The outputs. AssertionError when an input or a border was written."""
        for item in random_order(self.program.schedule, self.rng):
            match self.program.schedule.items[item].operation:
                case KernelItem() as kernel:
                    self._launch(kernel)
                case HostCallback() as callback:
                    result = lookup(callback.callback_name).evaluate(
                        [self._array(number).copy() for number in callback.input_vars], callback.attributes
                    )
                    self._array(callback.output_vars[0])[...] = result
                case Loop() as loop:
                    self._loop(loop)
                case MemoryTransfer(src_var=source, dst_var=target):
                    self._array(target)[...] = self._array(source)
                case _:
                    continue
        for memory, _ in self.memories.values():
            memory.check()
        for number, array in self.given.items():
            assert (self._raw(number) == array.reshape(-1).view(np.uint8)).all(), "an input or constant was written"
        return tuple(self._array(binding.buffer).copy() for binding in self.program.outputs)

    def _loop(self, loop: Loop) -> None:
        condition, body = (self.compilation.inner[number] for number in (loop.condition, loop.body))
        values = [self._array(number).copy() for number in loop.input_vars]
        while ShuffledCall(condition, values, self.symbols, self.rng).run()[0]:
            given = ShuffledCall(body, values, self.symbols, self.rng).run()
            values = [*given, *values[len(given) :]]
        for number, value in zip(loop.output_vars, values, strict=False):
            self._array(number)[...] = value

    def _launch(self, item: KernelItem) -> None:
        spec, kernel = self.program.kernels[item.kernel_id], self.kernels[item.kernel_id]
        if any(evaluate(dim, self.symbols) == 0 for dim in item.context.global_dims):
            return
        self._check_apart(spec.buffers, spec.outs)
        values = (ctypes.c_int64 * len(spec.var_names))(*(self.symbols[name] for name in spec.var_names))
        groups = evaluate(spec.global_size[0], self.symbols)
        for group in self.rng.permutation(groups):
            self._run_group(kernel, spec.buffers, values, int(group))

    def _run_group(self, kernel: CpuKernel, buffers: Sequence[int], values: ctypes.Array[Any], group: int) -> None:
        addresses: list[int] = []
        for number in buffers:
            memory, offset = self.memories[number]
            if self.program.buffers[number].role == "scratch":
                memory.bytes(0, memory.size)[:] = JUNK
            addresses.append(memory.address + offset)
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        kernel.function(ctypes.addressof(pointers), ctypes.addressof(values), group, group + 1)

    def _check_apart(self, buffers: Sequence[int], stored: Sequence[int]) -> None:
        """No argument that is stored to shares bytes with another: the code is compiled on that promise."""
        for slot in stored:
            for other, number in enumerate(buffers):
                if other != slot:
                    assert not np.shares_memory(self._raw(buffers[slot]), self._raw(number)), (slot, other)

    def _buffer(self, number: int) -> Buffer:
        return self.program.buffers[number]

    def _raw(self, number: int) -> Array:
        memory, offset = self.memories[number]
        return memory.bytes(offset, evaluate(self._buffer(number).size_bytes, self.symbols))

    def _array(self, number: int) -> Array:
        buffer = self._buffer(number)
        return self._raw(number).view(buffer.dtype.numpy).reshape([evaluate(d, self.symbols) for d in buffer.shape])
