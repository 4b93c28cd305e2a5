"""A graph under construction, with the arrays and symbols of one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, evaluate, to_wire
from tensorkiln.graph import Graph

from .tolerance import EXACT, Tolerance
from .values import Array, Flavour, array

T = TypeVar("T")
Dims = Sequence[Dim]


class Case(NamedTuple):
    """A graph, the arrays and symbols to call it with, and how far a result may be from the reference."""

    graph: Graph
    arrays: tuple[Array, ...]
    symbols: dict[str, int]
    tolerance: Tolerance

    def __repr__(self) -> str:
        arrays = ", ".join(f"{array!r}" for array in self.arrays)
        return f"Case({self.graph.to_json()}, ({arrays}), {self.symbols}, {self.tolerance})"


class Sketch:
    """Collects the nodes, inputs and symbols of a case; every choice is drawn, so hypothesis shrinks it."""

    def __init__(self, draw: DrawFn, symbolic: bool) -> None:
        self.draw = draw
        self.symbolic = symbolic
        self.rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        self.symbols: dict[str, int] = {}
        self.tolerance: Tolerance = EXACT
        self._declared: list[dict[str, Any]] = []
        self._nodes: list[dict[str, Any]] = []
        self._metadata: dict[int, dict[str, Any]] = {}
        self._is_stated = draw(st.booleans())
        self._must_state: set[int] = set()
        self._inputs: list[tuple[int, Array]] = []
        self._outputs: list[int] = []
        self._dims: dict[int, tuple[Dim, ...]] = {}
        self._dtypes: dict[int, DType] = {}
        self._first, self._step = draw(st.sampled_from([(0, 1), (3, 2), (40, 1)]))

    def pick(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def flag(self) -> bool:
        return self.draw(st.booleans())

    def value(self, dim: Dim) -> int:
        return evaluate(dim, self.symbols)

    def values(self, dims: Dims) -> tuple[int, ...]:
        return tuple(self.value(dim) for dim in dims)

    def dims(self, var: int) -> tuple[Dim, ...]:
        return self._dims[var]

    def shape(self, var: int) -> tuple[int, ...]:
        return self.values(self._dims[var])

    def dtype(self, var: int) -> DType:
        return self._dtypes[var]

    def fresh(self) -> int:
        """A var that nothing has defined."""
        return self._first + self._step * len(self._dims)

    def declare(self, name: str, value: int, low: int, high: int) -> None:
        """A symbol, its bounds, and its value in this call."""
        self.symbols[name] = value
        self._declared.append({"name": name, "min_val": low, "max_val": high})

    def add(self, node: str, dtype: DType, dims: Dims, *, must_state: bool = False, **fields: Any) -> int:
        """A node with a new out var of that type; `must_state` keeps its metadata in every case."""
        var = self.fresh()
        self.define(var, dtype, dims, must_state=must_state)
        self.write({"node": node, **fields, "out_var": var, "dtype": dtype})
        return var

    def define(self, var: int, dtype: DType, dims: Dims, *, must_state: bool = False) -> None:
        """The type of a var whose node is written separately."""
        self._dims[var], self._dtypes[var] = tuple(dims), dtype
        self._metadata[var] = {"dtype": dtype, "shape": [to_wire(dim) for dim in dims], "device": None}
        if must_state:
            self._must_state.add(var)

    def write(self, node: dict[str, Any]) -> None:
        """A node as the wire has it; its out vars are defined already."""
        self._nodes.append(node)

    def like(self, node: str, var: int, **fields: Any) -> int:
        """A node whose result has the type of `var`."""
        return self.add(node, self.dtype(var), self.dims(var), **fields)

    def input(self, dtype: DType, dims: Dims, flavour: Flavour = "wild") -> int:
        return self.input_of(array(self.rng, dtype, self.values(dims), flavour), dims)

    def input_of(self, contents: Array, dims: Dims | None = None) -> int:
        """A placeholder with given contents."""
        stated = contents.shape if dims is None else dims
        var = self.fresh()
        self.define(var, DType.from_numpy(contents.dtype), stated)
        shape = [to_wire(dim) for dim in stated]
        self.write({"node": "placeholder", "out_var": var, "dtype": self.dtype(var), "shape": shape})
        self._inputs.append((var, contents))
        return var

    def adopt_input(self, var: int, contents: Array) -> None:
        """A var that another node than a placeholder defined is an input too."""
        self._inputs.append((var, contents))

    def constant(self, dtype: DType, value: float | int | bool) -> int:
        """A scalar constant, exact in `dtype`."""
        return self.add("const_scalar", dtype, (), value=_literal(value))

    def array_of(self, var: int) -> Array:
        """The contents of an input."""
        return next(contents for known, contents in self._inputs if known == var)

    def output(self, *variables: int) -> None:
        self._outputs.extend(variables)

    def tolerate(self, allowed: Tolerance) -> None:
        self.tolerance = self.tolerance.widened(allowed)

    def case(self) -> Case:
        """The whole, validated. Metadata stands for every var or, as drawn, only where it decides something."""
        stated = {var: told for var, told in self._metadata.items() if self._is_stated or var in self._must_state}
        wire = {
            "schema": 1,
            "name": "case",
            "nodes": self._nodes,
            "vars_metadata": stated,
            "input_vars": [var for var, _ in self._inputs],
            "output_vars": self._outputs,
            "symbolic_vars": self._declared,
        }
        arrays = tuple(contents for _, contents in self._inputs)
        return Case(Graph.model_validate(wire), arrays, dict(self.symbols), self.tolerance)


def wire(dims: Dims) -> list[Any]:
    """Dims as a field of a node."""
    return [to_wire(dim) for dim in dims]


def literals(contents: Array) -> list[Any]:
    """The elements of an array, row-major, as JSON literals."""
    return [_literal(value) for value in contents.astype(object).reshape(-1)]


def _literal(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    number = float(value)
    if np.isnan(number):
        return "nan"
    return number if np.isfinite(number) else ("inf" if number > 0 else "-inf")
