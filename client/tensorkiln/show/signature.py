"""Signatures of programs: inputs, outputs, and bounds of symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..dtypes import DType
from ..expr import Dim
from .html_table import html_table


@dataclass(frozen=True, slots=True)
class Argument:
    """An input or output array; `shape` has a size or an expression in symbols for each axis."""

    name: str
    var: int
    dtype: DType
    shape: tuple[Dim, ...]
    is_parameter: bool = False

    @property
    def kind(self) -> str:
        """The dtype and shape, as `float32[n, 64]`."""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}"


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and outputs of a call, in order, and the inclusive bounds of the symbols."""

    name: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    symbols: Mapping[str, tuple[int, int]]

    def __str__(self) -> str:
        symbols = [f"{name}: {low}..{high}" for name, (low, high) in self.symbols.items()]
        taken = [*map(str, self.inputs), *(["*", *symbols] if symbols else [])]
        return f"{self.name or 'program'}({', '.join(taken)}) -> ({', '.join(each.kind for each in self.outputs)})"

    def html(self) -> str:
        """An HTML table of the signature."""
        rows = [("input", each.name, each.kind, "parameter" if each.is_parameter else "") for each in self.inputs]
        rows += [("output", each.name, each.kind, "") for each in self.outputs]
        rows += [("symbol", name, f"{low} to {high}", "") for name, (low, high) in self.symbols.items()]
        return html_table(self.name or "program", ("role", "name", "kind", ""), rows)

    _repr_html_ = html


def signature_of(program: Any, bound: Sequence[int] = ()) -> Signature:
    """The signature of a compiled program without the inputs whose vars are `bound`.

    The names are `input0`, `output0` and so on, counted over all inputs, bound ones included.
    """
    inputs = [
        Argument(f"input{place}", each.var, each.dtype, each.shape, each.is_parameter)
        for place, each in enumerate(program.inputs)
        if each.var not in bound
    ]
    outputs = [Argument(f"output{i}", each.var, each.dtype, each.shape) for i, each in enumerate(program.outputs)]
    return Signature(program.name, tuple(inputs), tuple(outputs), program.symbol_ranges)


def signature_of_graph(graph: Any) -> Signature:
    """The signature of the programs compiled from a graph."""
    types = graph.types
    inputs = [
        Argument(f"input{place}", var, types[var].dtype, types[var].shape, var in graph.parameter_vars)
        for place, var in enumerate(graph.input_vars)
    ]
    outputs = [
        Argument(f"output{i}", var, types[var].dtype, types[var].shape) for i, var in enumerate(graph.output_vars)
    ]
    return Signature(graph.name, tuple(inputs), tuple(outputs), dict(graph.symbols))
