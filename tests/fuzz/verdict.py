"""What came of a case: a problem, if there is one, and figures of what was compiled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .bounds import Bounded
from .composer import Way

LOOSE = 0.05
"""Of a bound beside the greatest element of its result: what is wrong by a larger part is still found."""


@dataclass(slots=True)
class Verdict:
    """`problem` says what is wrong, or is empty. `refused` counts the refusals by code and message.

    `elements` counts those of the results by how close their bound is: `exact`, `close`, `loose`, and `unknown` where
    any number would do.
    """

    problem: str = ""
    refused: Counter[str] = field(default_factory=Counter[str])
    strategies: Counter[str] = field(default_factory=Counter[str])
    ways: Counter[str] = field(default_factory=Counter[str])
    elements: Counter[str] = field(default_factory=Counter[str])
    milliseconds: Counter[str] = field(default_factory=Counter[str])

    def count_program(self, way: Way, strategies: Sequence[str]) -> None:
        self.ways[str(way)] += 1
        kind = way.target.partition(":")[0]
        self.strategies.update(f"{kind} {name}" for name in strategies)

    def count_bounds(self, expected: Sequence[Bounded]) -> None:
        for value, bound in expected:
            finite = np.abs(value[np.isfinite(value.astype(np.float64))].astype(np.float64))
            most = LOOSE * float(np.max(finite, initial=0.0))
            self.elements["exact"] += int(np.sum(bound == 0))
            self.elements["close"] += int(np.sum((bound > 0) & (bound <= most)))
            self.elements["loose"] += int(np.sum((bound > most) & np.isfinite(bound) & (bound > 0)))
            self.elements["unknown"] += int(np.sum(np.isinf(bound)))

    def to_json(self) -> str:
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_json(cls, text: str) -> Verdict:
        found = json.loads(text)
        return cls(found.pop("problem"), **{name: Counter(counts) for name, counts in found.items()})
