"""What an import gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import CallInputError
from ...graph import Graph


@dataclass(frozen=True, slots=True, eq=False)
class OnnxModel:
    """A graph, the arrays to bind to its parameter inputs, and the names of its other inputs and its outputs.

    `graph.input_vars` holds the vars of `inputs` first, in the model's order, then those of `parameters`.
    `program.bind(model.parameters)` leaves a program of the model's own inputs.
    """

    graph: Graph
    parameters: Mapping[int, np.ndarray[Any, Any]]
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]

    def arguments(self, /, **inputs: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
        """All input arrays in the order of `graph.input_vars`. CallInputError when a name is missing or unknown."""
        if inputs.keys() != self.inputs.keys():
            raise CallInputError(f"the model takes the inputs {sorted(self.inputs)}, given are {sorted(inputs)}")
        by_var = {self.inputs[name]: array for name, array in inputs.items()} | dict(self.parameters)
        return tuple(by_var[var] for var in self.graph.input_vars)
