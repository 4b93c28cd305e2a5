"""A cache of plans, one per binding of the symbols."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from ..errors import CallBoundsError
from ..expr import ExprError
from ..spec import CompiledProgram
from .arguments import InputSpec, bind_symbols, check_constraints, input_specs, symbol_values
from .phases import Phase

MAX_PLANS: Final = 64
"""The most plans cached; the least recently used is evicted first."""

P = TypeVar("P")
Specs = tuple[InputSpec, ...]
Check = Callable[[Specs], object]


class Plans(Generic[P]):
    """The plans of a phase of `program` with the inputs `resident` fixed.

    `make` receives the free inputs, the fixed inputs and the symbols of a call that has passed every check.
    Thread-safe.
    """

    def __init__(
        self,
        program: CompiledProgram,
        phase: Phase,
        resident: Sequence[int],
        make: Callable[[Specs, Specs, Mapping[str, int]], P],
    ) -> None:
        self._program, self._phase = program, phase
        self._resident = frozenset(resident)
        self._make = make
        self._names = tuple(symbol.name for symbol in program.symbols)
        self._plans: OrderedDict[tuple[int, ...], P] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, symbols: Mapping[str, int]) -> P | None:
        """The cached plan of a call, or None. If there is one, the symbols are in bounds and the constraints hold."""
        key = self._key(symbols)
        with self._lock:
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
            return plan

    def make(self, symbols: Mapping[str, int], check: Check) -> P:
        """Make the plan of a call and cache it.

        `check` checks the call's arrays first, so that their errors precede the plan's. CallBoundsError and
        CallInputError when the call does not fit the program.
        """
        key, plan = self._key(symbols), self.new(symbols, check)
        with self._lock:
            self._plans[key] = plan
            if len(self._plans) > MAX_PLANS:
                self._plans.popitem(last=False)
        return plan

    def new(self, symbols: Mapping[str, int], check: Check = lambda _: None) -> P:
        """Make a plan without caching it; errors as for `make`."""
        values = bind_symbols(self._program.symbols, symbols)
        try:
            specs = input_specs(self._phase.inputs, values)
            free = tuple(spec for spec in specs if spec.var not in self._resident)
            check(free)
            check_constraints(self._phase.constraints, values)
            return self._make(free, tuple(spec for spec in specs if spec.var in self._resident), values)
        except ExprError as error:
            raise CallBoundsError(f"a size of the program has no value at {values}: {error}") from error

    def _key(self, symbols: Mapping[str, int]) -> tuple[int, ...]:
        return symbol_values(self._program.symbols, self._names, symbols)
