"""Calls that machine code does; the numbers of a binding of the symbols are computed once and cached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..errors import DeviceError
from ..spec import CompiledProgram
from .arguments import symbol_values
from .blocks import LEAST_LENT, BlockPool
from .call_sizes import CallSizes
from .memory import ALIGNMENT, Array, Block
from .native_call import NativeCalls, native_calls
from .plans import MAX_PLANS

_Result = tuple[tuple[int, ...], np.dtype[Any], int]
"""Shape, dtype, and the bytes to allocate."""


@dataclass(frozen=True, slots=True)
class _Binding:
    """The call at one binding. `call` uses addresses in `block`, which this keeps alive.

    `lent` has the results that are in blocks of their own, None for others; empty when no result is.
    """

    call: Callable[..., tuple[Array, ...] | None]
    held_bytes: int
    block: Block
    lent: tuple[_Result | None, ...]


class ShortCalls:
    """Calls of one phase of a program, one at a time: a concurrent call returns None.

    `_block` has room for the temporaries of every cached binding.
    """

    def __init__(
        self,
        program: CompiledProgram,
        sizes: CallSizes,
        native: NativeCalls,
        pools: tuple[BlockPool, BlockPool],
    ) -> None:
        self._symbols = program.symbols
        self._names = tuple(symbol.name for symbol in program.symbols)
        self._outputs = tuple((output.dtype, len(output.dims)) for output in sizes.outputs)
        self._native = native
        self._pool, self._results = pools
        self._bindings: dict[tuple[int, ...], _Binding | None] = {}
        self._block = self._pool.take(0)
        self._only: _Binding | None = None
        self.held_bytes = 0

    @staticmethod
    def of(program: CompiledProgram, sizes: CallSizes, pools: tuple[BlockPool, BlockPool]) -> ShortCalls | None:
        """Short calls of these sizes; `pools` are for temporaries and for results. None without machine code."""
        made = native_calls(sizes)
        return None if made is None else ShortCalls(program, sizes, made, pools)

    def run(self, arrays: Sequence[Any], symbols: Mapping[str, int]) -> tuple[Array, ...] | None:
        """Run and return the results; None when nothing has run. CallBoundsError as for `symbol_values`."""
        binding = None if symbols else self._only
        if binding is None:
            values = symbol_values(self._symbols, self._names, symbols)
            try:
                binding = self._bindings[values]
            except KeyError:
                binding = self._bound(values)
            if binding is None:
                return None
        held = binding.held_bytes
        try:
            if binding.lent:
                given, more = self._lent(binding)
                held += more
                results = binding.call(*arrays, *given)
            else:
                results = binding.call(*arrays)
        except MemoryError:
            # The Python call that follows reports which allocation failed.
            return None
        if results is not None:
            self.held_bytes = held
        return results

    def _lent(self, binding: _Binding) -> tuple[list[Array | None], int]:
        """Arrays for the results in blocks, and the bytes that these blocks have beyond the results' needs."""
        given: list[Array | None] = []
        more = 0
        for result in binding.lent:
            if result is None:
                given.append(None)
                continue
            array, _, held = self._results.array(*result)
            given.append(array)
            more += held - result[2] - ALIGNMENT
        return given, more

    def _bound(self, values: tuple[int, ...]) -> _Binding | None:
        if len(self._bindings) >= MAX_PLANS:
            self._bindings = {}
        try:
            binding = self._binding(values)
        except DeviceError:
            # Not cached: the next call may find room for the block.
            return None
        self._bindings[values] = binding
        if not self._names:
            self._only = binding
        return binding

    def _binding(self, values: tuple[int, ...]) -> _Binding | None:
        block = self._block
        sizes = self._native.sizes_at(*values, block.address)
        if sizes is not None and sizes[0] > block.size:
            block = self._block = self._pool.take(sizes[0])
            # Cached bindings would keep the old, smaller block alive.
            self._bindings = {}
            sizes = self._native.sizes_at(*values, block.address)
        if sizes is None:
            return None
        lent = self._lent_at(sizes)
        call = self._native.call_into if lent else self._native.call
        return _Binding(partial(call, sizes[-1]), sizes[1], block, lent)

    def _lent_at(self, sizes: tuple[Any, ...]) -> tuple[_Result | None, ...]:
        block_size, held_bytes = sizes[:2]
        if held_bytes - block_size < LEAST_LENT:
            return ()
        lent: list[_Result | None] = []
        start = 2
        for dtype, rank in self._outputs:
            size, end = sizes[start], start + 1 + rank
            lent.append((sizes[start + 1 : end], dtype, size) if size >= LEAST_LENT else None)
            start = end
        return tuple(lent) if any(lent) else ()
