"""A module of kernels, executed on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from time import perf_counter
from typing import Any, Final

from .accesses import Watcher
from .diagnosis import Diagnosis
from .entries import Entry, entries
from .errors import LaunchRefused
from .launch import Argument, geometry, packed, pointers
from .native import native
from .rewrite import HostText, host_text
from .running import Running, run
from .shared import SharedArray
from .spans import Span
from .text import parsed
from .tiers import Tiers
from .watch import Watch

_turn: Final = Lock()
"""The runtime and the shared memory exist once a process."""


class SimtModule:
    """Kernels from the LLVM IR text that becomes PTX: `define ptx_kernel void @name(ptr …, i64 …)`.

    Threads of a block run one at a time, in an order drawn from the seed, each until it has to wait for others; blocks
    follow one another, in an order drawn from the seed, each with poisoned shared memory. Raises UnsupportedKernel for
    what is not emulated.
    """

    def __init__(self, text: str) -> None:
        self._module: Any = parsed(text)
        self._hosts: dict[bool, HostText] = {False: host_text(self._module)}
        self._tiers: dict[tuple[str, bool], Tiers] = {}
        self.entries: Mapping[str, Entry] = entries(self._module, self._hosts[False])

    def launch(
        self,
        entry: str,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[Argument],
        *,
        dynamic_shared_bytes: int = 0,
        seed: int = 0,
        watch: Watch | None = None,
    ) -> None:
        """Run the kernel `entry` to its end. Missing dimensions of `grid` and `block` are 1.

        Arguments are addresses (or `Buffer`s) for pointers, and numbers. With a `watch` every access is checked, which
        is some ten times slower. Raises LaunchRefused before, and KernelFault at the first sign of something that a GPU
        would not do as meant; the memory is then as the kernel left it.
        """
        kernel = self.entries.get(entry)
        if kernel is None:
            raise LaunchRefused(f"the module has no kernel {entry}; it has {', '.join(self.entries)}")
        shape = geometry(kernel, grid, block, dynamic_shared_bytes)
        values = packed(kernel, arguments)
        shared = [_sized(array, dynamic_shared_bytes) for array in kernel.shared]
        addresses = pointers(kernel, arguments)
        with _turn:
            tiers = self._code(kernel, watch is not None)
            code = tiers.code(shape.blocks * shape.threads)
            constants = [Span(symbol, *code.constant(symbol)) for symbol in tiers.host.constants]
            tracks = watch.begin(addresses.values(), shared, constants) if watch else None
            begin = perf_counter()
            report = run(Running(code.address, kernel.suspends, shape, values, shared, seed))
            tiers.ran(perf_counter() - begin)
            if watch and tracks:
                watch.end(tracks)
            if report is not None:
                named = [*shared, *constants, *(watch.named(addresses) if watch else ())]
                raise Diagnosis(entry, shape, tiers.host.sites, report, native().threads, named).fault()

    def _code(self, entry: Entry, watched: bool) -> Tiers:
        if watched not in self._hosts:
            runtime = native()
            watcher = Watcher(runtime.address("simt_before"), runtime.address("simt_after"))
            self._hosts[watched] = host_text(self._module, watcher)
        found = self._tiers.get((entry.name, watched))
        if found is None:
            found = self._tiers[entry.name, watched] = Tiers(self._hosts[watched], entry)
        return found


def _sized(array: SharedArray, dynamic_shared_bytes: int) -> Span:
    return Span(array.symbol, array.address, dynamic_shared_bytes if array.dynamic else array.size)
