"""Run a graph compiled for a CUDA target in the emulator: its very LLVM IR, by the launches that it came with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np

from passes.compile import Compilation
from tensorkiln.custom import lookup
from tensorkiln.errors import CallTurnsError
from tensorkiln.expr import evaluate
from tensorkiln.graph import Graph
from tensorkiln.runtime.phases import whole
from tensorkiln.runtime.storage import Storage, resolve_storages
from tensorkiln.schedule import HostCallback, KernelItem, Loop, MemoryTransfer
from tensorkiln.spec import ProgramSpec
from tests.compiled import EVERY, proven
from tests.numerics.cases.turns import EXAMPLES
from tests.simt.memory import Buffer as DeviceBuffer
from tests.simt.memory import DeviceMemory
from tests.simt.module import SimtModule
from tests.simt.watch import Watch

Array = np.ndarray[Any, Any]
TARGET = "cuda:sm_80"
_EVERY = 8
"""Of so many graphs one is compiled with the texts of all stages, which takes twice as long."""


def ready(graph: Graph) -> Callable[..., tuple[Array, ...]]:
    """The graph compiled: what gives its outputs, any number of times, its threads in an order drawn from `seed`."""
    has_every = EXAMPLES > 1 or crc32(graph.to_json().encode()) % _EVERY == 0
    compilation = proven(graph, TARGET, texts=EVERY if has_every else ["translate"])

    def call(*arrays: Any, seed: int = 0, **symbols: int) -> tuple[Array, ...]:
        return Emulation(compilation, arrays, symbols).run(seed=seed)

    return call


def run(graph: Graph, /, *arrays: Any, seed: int = 0, **symbols: int) -> tuple[Array, ...]:
    """The outputs of the graph, its threads in an order drawn from `seed`."""
    return ready(graph)(*arrays, seed=seed, **symbols)


@lru_cache(maxsize=4)
def _module(text: str) -> SimtModule:
    """The kernels of a program, made ready for this host once for all its calls."""
    return SimtModule(text)


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch that was watched: its kernel, and how often each byte of each buffer of the program was stored to."""

    kernel: ProgramSpec
    stores: dict[int, Array]


@dataclass(slots=True)
class Emulation:
    """One call of a compiled program, every storage in memory of its own between poisoned borders."""

    compilation: Compilation
    arrays: Sequence[Any]
    symbols: dict[str, int]
    memory: DeviceMemory = field(default_factory=DeviceMemory)
    buffers: dict[int, DeviceBuffer] = field(default_factory=dict[int, DeviceBuffer])
    launched: list[Launched] = field(default_factory=list[Launched])

    def __post_init__(self) -> None:
        program = self.compilation.program
        given = {binding.buffer: array for binding, array in zip(program.inputs, self.arrays, strict=True)}
        for storage in resolve_storages(program, whole(program)):
            address = self._place(storage, given.get(storage.anchor.id))
            for buffer in storage.members:
                shape = tuple(evaluate(dim, self.symbols) for dim in buffer.shape)
                first = address + evaluate(buffer.offset, self.symbols)
                self.buffers[buffer.id] = DeviceBuffer(self.memory, first, shape, buffer.dtype.numpy)

    def _place(self, storage: Storage, array: Any) -> int:
        """The address of the storage, which holds `array` if that is given, or a constant."""
        dtype, artifact = storage.anchor.dtype.numpy, storage.anchor.artifact
        if artifact is not None:
            array = np.frombuffer(self.compilation.artifacts[artifact], dtype)
        if array is None:
            return self.memory.allocate(storage.extent(self.symbols))
        return self.memory.upload(np.asarray(array, dtype, order="C")).address

    def run(self, *, seed: int = 0, watched: bool = False) -> tuple[Array, ...]:
        """Run every item; with `watched`, check every access and count the stores of every launch."""
        program = self.compilation.program
        module = _module(self.compilation.dumps["translate"]) if program.kernels else None
        for item in program.schedule.items:
            match item.operation:
                case KernelItem(kernel_id=number):
                    assert module is not None, "a program with a kernel item has kernels"
                    self._launch(module, program.kernels[number], seed, watched)
                case HostCallback() as callback:
                    self._call(callback)
                case Loop() as loop:
                    self._loop(loop, seed, watched)
                case MemoryTransfer(src_var=source, dst_var=target):
                    self.memory.write(self.buffers[target].address, self.buffers[source].numpy())
                case _:
                    continue
        return tuple(self.buffers[binding.buffer].numpy() for binding in program.outputs)

    def _launch(self, module: SimtModule, kernel: ProgramSpec, seed: int, watched: bool) -> None:
        grid = tuple(evaluate(size, self.symbols) for size in kernel.global_size)
        if 0 in grid:
            return
        assert kernel.local_size is not None, "a GPU kernel has threads"
        read_only = [self.buffers[kernel.buffers[slot]] for slot in kernel.ins if slot not in kernel.outs]
        watch = Watch(self.memory, read_only) if watched else None
        module.launch(
            kernel.entry,
            grid,
            tuple(evaluate(size, self.symbols) for size in kernel.local_size),
            [*(self.buffers[number] for number in kernel.buffers), *(self.symbols[name] for name in kernel.var_names)],
            dynamic_shared_bytes=evaluate(kernel.dynamic_shared_bytes, self.symbols),
            seed=seed,
            watch=watch,
        )
        if watch is not None:
            written = {kernel.buffers[slot] for slot in kernel.outs}
            stores = {number: watch.stores(self.buffers[number]) for number in written}
            self.launched.append(Launched(kernel, stores))

    def _loop(self, loop: Loop, seed: int, watched: bool) -> None:
        condition, body = (self.compilation.inner[number] for number in (loop.condition, loop.body))
        values = [self.buffers[number].numpy() for number in loop.input_vars]
        turns = 0
        while Emulation(condition, values, self.symbols).run(seed=seed, watched=watched)[0]:
            if turns == loop.most:
                raise CallTurnsError.beyond(loop.most)
            turns += 1
            given = Emulation(body, values, self.symbols).run(seed=seed, watched=watched)
            values = [*given, *values[len(given) :]]
        for number, value in zip(loop.output_vars, values, strict=False):
            self.memory.write(self.buffers[number].address, np.ascontiguousarray(value))

    def _call(self, callback: HostCallback) -> None:
        inputs = [self.buffers[number].numpy() for number in callback.input_vars]
        result = lookup(callback.callback_name).evaluate(inputs, callback.attributes)
        self.memory.write(self.buffers[callback.output_vars[0]].address, np.ascontiguousarray(result))
