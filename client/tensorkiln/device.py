"""A device as a back end offers it: renderer, compiler, runtime, allocator, and the kernels compiled on it.

The way of a kernel: `render` turns its node graph into a `ProgramSpec` with source, `compile` that into a
`CompiledSpec`, the runtime factory that into a kernel program, which executes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .launch.nodes import LaunchNode
from .program_walk import Rule, content_digest, rewrite
from .spec import CompiledSpec, ProgramSpec

CacheKey = tuple[str, str, str]
"""Content digest of the kernel, cache key of the compiler, base key of the device."""


class Renderer(Protocol):
    """Turns node graphs into source."""

    @property
    def device(self) -> str:
        """The device rendered for, such as `CUDA:1`."""
        ...

    def render(self, ast: LaunchNode, name: str | None) -> ProgramSpec:
        """The kernel with its source; without a name it is called `kernel`."""
        ...

    def decompositor(self) -> Rule | None:
        """What rewrites operations that the device lacks, or None when it lacks none."""
        ...


class Compiler(Protocol):
    """Turns source into something that a runtime loads."""

    @property
    def cache_key(self) -> str:
        """Everything besides the kernel that can change the result: compiler, version, architecture, flags."""
        ...

    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        """Source for a just-in-time runtime, bytes for the others."""
        ...


class KernelProgram(Protocol):
    """An executable kernel without state: threads may execute it at the same time on different buffers."""

    @property
    def name(self) -> str: ...

    def execute(
        self,
        buffers: Sequence[int],
        vals: Sequence[int],
        global_size: tuple[int, int, int] | None = None,
        local_size: tuple[int, int, int] | None = None,
    ) -> None:
        """Run with buffer addresses in call order and values in the order of `var_names`; wrong counts are errors."""
        ...


class Allocator(Protocol):
    """Lends device memory."""

    def take(self, size: int) -> Any:
        """A block of at least `size` bytes."""
        ...

    def give(self, block: Any) -> None:
        """Return a block."""
        ...


RuntimeFactory = Callable[[CompiledSpec], KernelProgram]


class KernelCache:
    """Compiled kernels by content. Threads that miss the same key at the same time get one compile between them."""

    def __init__(self) -> None:
        self._entries: dict[CacheKey, CompiledSpec] = {}
        self._locks: dict[CacheKey, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: CacheKey, compile: Callable[[], CompiledSpec]) -> CompiledSpec:
        """The kernel under `key`, compiled if it is missing. A compile that fails leaves no entry."""
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._entries:
                self._entries[key] = compile()
            return self._entries[key]


@dataclass(frozen=True)
class Device:
    """A device and its tool chain; `renderer` and `compiler` are the first of `compilers`."""

    spec: str
    allocator: Allocator
    compilers: tuple[tuple[Renderer, Compiler], ...]
    runtime: RuntimeFactory
    cache: KernelCache = field(default_factory=KernelCache)

    @staticmethod
    def new(
        spec: str,
        allocator: Allocator,
        renderer: Renderer,
        compiler: Compiler,
        runtime: RuntimeFactory,
        cache: KernelCache | None = None,
    ) -> Device:
        """A device with one tool chain. Devices that share a cache share compiled kernels."""
        return Device(spec, allocator, ((renderer, compiler),), runtime, cache or KernelCache())

    @property
    def renderer(self) -> Renderer:
        return self.compilers[0][0]

    @property
    def compiler(self) -> Compiler:
        return self.compilers[0][1]

    @property
    def base_device_key(self) -> str:
        """The kind of the device without its number: what runs on `CUDA:0` runs on `CUDA:1`."""
        return self.spec.partition(":")[0]

    def compile(self, ast: LaunchNode, name: str | None = None) -> CompiledSpec:
        """The kernel under `ast`, from the cache where possible; what the device lacks is rewritten first."""
        key = (content_digest(ast), self.compiler.cache_key, self.base_device_key)
        return self.cache.get(key, lambda: self._compile(ast, name))

    def load(self, ast: LaunchNode, name: str | None = None) -> KernelProgram:
        """The kernel under `ast`, ready to execute."""
        return self.runtime(self.compile(ast, name))

    def _compile(self, ast: LaunchNode, name: str | None) -> CompiledSpec:
        rule = self.renderer.decompositor()
        supported = ast if rule is None else rewrite(ast, rule)
        return self.compiler.compile(self.renderer.render(supported, name))
