"""A compiled program that runs on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .runtime.executor import Executor
from .runtime.profile import ItemProfile
from .spec import CompiledProgram

Array = np.ndarray[Any, Any]


class Program:
    """Call it with the arrays of the graph's `input_vars` and its symbols by name; it returns those of `output_vars`.

    `artifacts` gives the bytes of an artifact by its SHA-256; they are verified before use. `threads` bounds how many
    threads one kernel runs on (default: the processors available to this process). A program may be called from several
    threads at once. The results are fresh arrays that share no memory with the inputs or with each other.

    DeviceError when this machine cannot run the program; UnavailableError when an artifact has the wrong bytes.
    """

    def __init__(
        self, compiled: CompiledProgram, artifacts: Callable[[str], bytes], *, threads: int | None = None
    ) -> None:
        self._executor = Executor.load(compiled, artifacts, threads)

    @classmethod
    def _of(cls, executor: Executor) -> Program:
        program = cls.__new__(cls)
        program._executor = executor
        return program

    @property
    def compiled(self) -> CompiledProgram:
        """The record that the program runs."""
        return self._executor.compiled

    def __call__(self, *arrays: Array | np.generic, **symbols: int) -> tuple[Array, ...]:
        """Run once.

        CallBoundsError when a symbol is missing, unknown or out of bounds; CallInputError when the count, dtype or
        shape of the arrays is wrong or a constraint between shapes does not hold. Nothing has run then.
        """
        return self._executor.run(arrays, symbols)

    def bind(self, params: Mapping[int, Array]) -> Program:
        """The same program with some inputs fixed: `params` gives arrays by var, and calls take the others only.

        Contiguous arrays are kept, not copied, and must not be changed while the program is in use. CallInputError when
        a var is no free input or an array does not fit.
        """
        return Program._of(self._executor.bind(params))

    def profile(self, *arrays: Array | np.generic, **symbols: int) -> tuple[ItemProfile, ...]:
        """Run once and return what each schedule item took, in order of execution."""
        return self._executor.profile(arrays, symbols)

    def planned_peak_bytes(self, **symbols: int) -> int:
        """Bytes that a call will allocate for temporaries, outputs and scratch. CallBoundsError as for a call."""
        return self._executor.planned_peak_bytes(symbols)

    @property
    def measured_peak_bytes(self) -> int:
        """Bytes that the most recently finished call held for temporaries, outputs and scratch; 0 before any call."""
        return self._executor.measured_peak_bytes
