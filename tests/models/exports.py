"""One export of a model: its graph, and how far from torch's outputs is what a graph's outputs are computed to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from tensorkiln.frontends.model import Model
from tensorkiln.frontends.onnx import load
from tests.models.families import FAMILIES, Family

Array: TypeAlias = np.ndarray[Any, Any]
Run: TypeAlias = Callable[..., tuple[Array, ...]]
"""Takes the inputs of a graph and the values of its symbols by name; gives the outputs."""

TOLERANCE: Final = 5e-6
"""The largest difference from torch, relative to the largest element of an output.

Both compute in float32, in another order: of all outputs here the farthest was measured at 7e-7.
"""


@dataclass(frozen=True, slots=True)
class Export:
    """What one exporter made of a family in one form."""

    family: Family
    exporter: str
    form: str

    def __str__(self) -> str:
        return f"{self.family.name}-{self.exporter}-{self.form}"

    @property
    def path(self) -> Path:
        return self.family.path(self.exporter, self.form)

    def load(self) -> Model:
        """The imported model; UnsupportedGraphError where the importer refuses it."""
        return load(self.path, symbols=self.family.bounds(self.form))

    def differences(self, model: Model, run: Run) -> Iterator[tuple[str, float]]:
        """The largest difference from torch of each output at each size, relative to the largest element of the output.

        `run` takes all inputs of the graph, weights included. AssertionError for another shape or dtype.
        """
        samples = _samples(self.family.samples)
        for number in self.family.asked(self.form):
            inputs = {name: samples[f"{number}.{name}"] for name in model.inputs}
            symbols = {name: self.family.sizes[number][name] for name in model.graph.symbols}
            for name, actual in zip(model.outputs, run(*model.arguments(**inputs), **symbols), strict=True):
                expected = samples[f"{number}.{name}"]
                assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype), name
                yield f"{number}.{name}", float(np.abs(actual - expected).max() / np.abs(expected).max())


@cache
def _samples(path: Path) -> dict[str, Array]:
    with np.load(path) as arrays:
        return dict(arrays)


EXPORTS: Final = tuple(
    Export(family, exporter, form) for family in FAMILIES for exporter in family.exporters for form in family.forms
)
