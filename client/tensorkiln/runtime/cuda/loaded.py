"""A CUDA program: its record and artifacts, and from first use on, its code and constants on a device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from ...errors import DeviceError
from ...spec import CompiledProgram
from ...spec.abi import KNOWN_ABIS
from ..artifact import constant_bytes, verified
from ..outline import outlines_of, require_devices
from ..pool import MAX_IDLE, Pool
from .context import Context
from .driver import ALIGNMENT, Driver, Function
from .memory import DeviceBlock
from .modules import Module, code_digest, require_device
from .native import open_driver
from .streams import Stream

CUDA_ABI: Final = 1
_DEVICES: Final = frozenset({"CUDA", "CPU"})


@dataclass(frozen=True)
class Lane:
    """A stream, and a pool for the temporaries of calls on it, so that calls on different lanes do not wait."""

    stream: Stream
    arenas: Pool[DeviceBlock]


@dataclass(frozen=True)
class Session:
    """A program on its device: `functions` by kernel id, `constants` by buffer id.

    Work goes to `lane` unless the executor has another stream.
    """

    context: Context
    modules: tuple[Module, ...]
    functions: tuple[Function, ...]
    constants: Mapping[int, DeviceBlock]
    lane: Lane


class CudaProgram:
    """A program for a GPU. Its `session` starts at first use; until then no driver is needed.

    `inner` are the programs of its loops.
    """

    def __init__(self, program: CompiledProgram, artifacts: Mapping[str, bytes], driver: Callable[[], Driver]) -> None:
        self.program: Final = program
        self.inner: Final = tuple(CudaProgram(inner, artifacts, driver) for inner in program.inner)
        self.outlines: Final = outlines_of(program)
        self._artifacts = artifacts
        self._driver = driver
        self._session: Session | None = None
        self._lock = threading.Lock()

    def session(self) -> Session:
        """The program on its device. DeviceError when no device can run it."""
        with self._lock:
            if self._session is None:
                self._session = self._begin(self._driver())
            return self._session

    def lane(self, context: Context, stream: Stream) -> Lane:
        """A lane for calls on `stream`."""
        return Lane(stream, context.heap.pool(slack=bool(self.program.symbols), max_idle=MAX_IDLE))

    def _begin(self, driver: Driver) -> Session:
        arch = self.program.target.arch or ""
        require_device(arch, driver.properties)
        context = Context.of(driver)
        with driver.scope():
            modules: dict[str, Module] = {}
            functions: list[Function] = []
            for kernel in self.program.kernels:
                digest = code_digest(kernel, arch, driver.properties)
                if digest not in modules:
                    modules[digest] = context.module(digest, self._artifacts[digest])
                functions.append(modules[digest].function(kernel.entry or kernel.name))
            return Session(
                context=context,
                modules=tuple(modules.values()),
                functions=tuple(functions),
                constants=self._upload_constants(context),
                lane=self.lane(context, Stream.create(driver)),
            )

    def _upload_constants(self, context: Context) -> dict[int, DeviceBlock]:
        contents = {
            buffer.id: np.frombuffer(self._artifacts[buffer.artifact], np.uint8)
            for buffer in self.program.buffers
            if buffer.artifact is not None
        }
        blocks = {buffer_id: context.heap.allocate(content.nbytes) for buffer_id, content in contents.items()}
        context.upload([(blocks[buffer_id], content) for buffer_id, content in contents.items()])
        return blocks


def load_program(
    program: CompiledProgram, artifacts: Callable[[str], bytes], device: int | Driver | None
) -> CudaProgram:
    """Verify the artifacts of `program`; `device` is the GPU to run on, None for number 0.

    DeviceError when this runtime cannot run the record, UnavailableError when an artifact is corrupt,
    UnsupportedGraphError when the program calls an operation that is not registered.
    """
    contents = {digest: verified(artifacts, digest) for digest in sorted(program.artifacts)}
    _require_usable(program, contents)
    ordinal = 0 if device is None else device
    opener = partial(open_driver, ordinal) if isinstance(ordinal, int) else lambda: ordinal
    return CudaProgram(program, contents, opener)


def _require_usable(program: CompiledProgram, contents: Mapping[str, bytes]) -> None:
    _require_known(program)
    require_devices(program, kernels="CUDA", transfers=_DEVICES, alignment=ALIGNMENT)
    for buffer in program.buffers:
        if buffer.role == "constant":
            constant_bytes(buffer, contents.__getitem__)
    for inner in program.inner:
        _require_usable(inner, contents)


def _require_known(program: CompiledProgram) -> None:
    if program.abi not in KNOWN_ABIS:
        known = ", ".join(map(str, KNOWN_ABIS))
        raise DeviceError(f"the program has the ABI {program.abi} and this runtime knows {known}; update tensorkiln")
    for kernel in program.kernels:
        if kernel.abi != CUDA_ABI:
            raise DeviceError(f"kernel {kernel.name} has the ABI {kernel.abi} and this runtime knows {CUDA_ABI}")
        if kernel.artifact is None:
            raise DeviceError(f"kernel {kernel.name} has no code; compile the program for a cuda target")
        if kernel.local_size is None:
            raise DeviceError(f"kernel {kernel.name} has no local_size; a CUDA kernel has threads in blocks")
    for buffer in program.buffers:
        if buffer.role == "scratch":
            raise DeviceError(f"buffer {buffer.id} is scratch, which a GPU has not; compile the program again")
