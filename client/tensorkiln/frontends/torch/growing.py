"""Programs of a graph with dynamic sizes; the bounds grow when a call exceeds them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from ...errors import LimitExceededError, UnsupportedGraphError
from ...expr import Expr, free_symbols, to_text
from .calling import Calling
from .exported import Exported
from .model import TorchModel
from .ranges import limited
from .translate import translated
from .weights import BoundWeights

FIRST_BOUND: Final = 4096
"""The first upper bound of a dynamic size, if the graph can be compiled for it."""
LEAST_BOUND: Final = 16
"""The narrowest bound tried for a graph that is refused at wider ones."""
STEP: Final = 4
LAST_BOUND: Final = 1 << 28
MAX_FIXED: Final = 64
"""The most values of integers outside all bounds (negative ones, for example), each with a program of its own."""
INFINITE_INTEGER: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Bounded:
    """A program and the upper bound of each symbol."""

    most: Mapping[str, int]
    program: BoundWeights


class Programs:
    """Finds or compiles the program for the sizes and integers of a call. Thread-safe.

    `seen` are the sizes that the graph was traced with. `load` makes a program from a model.
    """

    def __init__(self, exported: Exported, seen: Mapping[str, int], load: Callable[[TorchModel], BoundWeights]) -> None:
        self._exported = exported
        self._load = load
        self._lock = threading.Lock()
        self._fixed: dict[tuple[tuple[str, int], ...], BoundWeights] = {}
        self._needed = {name: value for name, value in seen.items() if 0 <= value <= LAST_BOUND}
        self._main = self._compiled({}, self._needed)
        self.calling = self._main.program.model.calling
        self._numbers = _numbers(self.calling)

    def fitting(self, symbols: Mapping[str, int]) -> BoundWeights:
        """The program for these sizes, compiled if there is none yet.

        LimitExceededError for a size above `LAST_BOUND`, and for more than `MAX_FIXED` values of integers outside it;
        UnsupportedGraphError when an operation cannot be compiled for sizes this large.
        """
        fixed = {
            name: value for name, value in symbols.items() if name in self._numbers and not 0 <= value <= LAST_BOUND
        }
        sizes = {name: value for name, value in symbols.items() if name not in fixed}
        most = max(sizes.values(), default=0)
        if most > LAST_BOUND:
            raise LimitExceededError(
                f"a size is {most}, at most {LAST_BOUND} is taken", limit="size", maximum=LAST_BOUND, actual=most
            )
        with self._lock:
            bounds = self._main.most
            if any(value > bounds.get(name, value) for name, value in sizes.items()):
                needed = {name: max(value, self._needed.get(name, 0)) for name, value in sizes.items()}
                self._main = self._compiled({}, needed)
                # After the compile, so that a failed one changes nothing.
                self._needed, self._fixed = needed, {}
            return self._fixed_at(fixed) if fixed else self._main.program

    def _fixed_at(self, fixed: Mapping[str, int]) -> BoundWeights:
        key = tuple(sorted(fixed.items()))
        if key not in self._fixed:
            if len(self._fixed) == MAX_FIXED:
                raise LimitExceededError(
                    f"the integer {key[0][1]} is not from 0 to {LAST_BOUND}; each such value needs a program, and "
                    f"at most {MAX_FIXED} are compiled: pass it as a tensor",
                    limit="integers",
                    maximum=MAX_FIXED,
                    actual=MAX_FIXED + 1,
                )
            self._fixed[key] = self._compiled(fixed, self._needed).program
        return self._fixed[key]

    def _compiled(self, fixed: Mapping[str, int], needed: Mapping[str, int]) -> Bounded:
        ranges = {**self._exported.ranges, **dict.fromkeys(fixed, (-INFINITE_INTEGER, None))}
        exported = replace(self._exported, ranges=ranges)
        model = self._widest(exported, fixed, needed)
        most = {name: high for name, (_, high) in model.graph.symbols.items()}
        return Bounded(most, self._load(model))

    def _widest(self, exported: Exported, fixed: Mapping[str, int], needed: Mapping[str, int]) -> TorchModel:
        """The model for the widest bounds at which no operation is refused (for a too large table, for example).

        UnsupportedGraphError, which lists the operations refused at the narrowest bounds.
        """
        try:
            return _translated(exported, fixed, needed, FIRST_BOUND)
        except UnsupportedGraphError:
            found = _translated(exported, fixed, needed, LEAST_BOUND)
        bound = FIRST_BOUND // STEP
        while bound > LEAST_BOUND:
            try:
                return _translated(exported, fixed, needed, bound)
            except UnsupportedGraphError:
                bound //= STEP
        return found


def _translated(exported: Exported, fixed: Mapping[str, int], needed: Mapping[str, int], bound: int) -> TorchModel:
    return translated(*limited(exported, fixed, lambda name: max(_rounded_up(needed.get(name, 0)), bound)))


def _rounded_up(value: int) -> int:
    bound = LEAST_BOUND
    while bound < value:
        bound *= STEP
    return bound


def _numbers(calling: Calling) -> frozenset[str]:
    """The symbols that are integer arguments and not sizes of any argument."""
    sizes = {name for shape in calling.shapes.values() for dim in shape for name in free_symbols(dim)}
    return frozenset(to_text(dim) for dim in calling.sizes.values() if isinstance(dim, Expr)) - sizes
