"""A back end's device: renderer, compiler, runtime, allocator, and the kernels compiled for it.

`render` turns a kernel's node graph into a `ProgramSpec` with source, `compile` turns that into a `CompiledSpec`, and
the runtime factory turns that into an executable kernel program.
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
        """The target device, such as `CUDA:1`."""
        ...

    def render(self, ast: LaunchNode, name: str | None) -> ProgramSpec:
        """Render the kernel to source; the default name is `kernel`."""
        ...

    def decompositor(self) -> Rule | None:
        """The rule that rewrites operations that the device lacks; None when it lacks none."""
        ...


class Compiler(Protocol):
    """Turns source into something that a runtime loads."""

    @property
    def cache_key(self) -> str:
        """All inputs of the compile other than the kernel: compiler, version, architecture, flags."""
        ...

    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        """Compile to source for a just-in-time runtime, to bytes for others."""
        ...


class KernelProgram(Protocol):
    """A stateless executable kernel: several threads may execute it at the same time on different buffers."""

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
    """Compiled kernels by content, with single-flight compiles: concurrent misses of a key compile once."""

    def __init__(self) -> None:
        self._entries: dict[CacheKey, CompiledSpec] = {}
        self._locks: dict[CacheKey, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: CacheKey, compile: Callable[[], CompiledSpec]) -> CompiledSpec:
        """The kernel under `key`, compiled if it is missing. A failed compile leaves no entry."""
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
        """The kind of the device without its number: kernels for `CUDA:0` also run on `CUDA:1`."""
        return self.spec.partition(":")[0]

    def compile(self, ast: LaunchNode, name: str | None = None) -> CompiledSpec:
        """Compile the kernel under `ast`, or take it from the cache. Operations that the device lacks are rewritten."""
        key = (content_digest(ast), self.compiler.cache_key, self.base_device_key)
        return self.cache.get(key, lambda: self._compile(ast, name))

    def load(self, ast: LaunchNode, name: str | None = None) -> KernelProgram:
        """Compile and load the kernel under `ast`, ready to execute."""
        return self.runtime(self.compile(ast, name))

    def _compile(self, ast: LaunchNode, name: str | None) -> CompiledSpec:
        rule = self.renderer.decompositor()
        supported = ast if rule is None else rewrite(ast, rule)
        return self.compiler.compile(self.renderer.render(supported, name))
