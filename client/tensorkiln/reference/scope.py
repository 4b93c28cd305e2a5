"""The state of a graph's evaluation: the arrays of the vars so far, their types and the symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ..dtypes import DType
from ..errors import CallInputError
from ..expr import Dim, ExprError
from ..expr import evaluate as evaluate_dim
from ..types import TensorType
from .precision import Array


class Scope:
    """The state of one evaluation.

    A var's array is its storage: `assign` and destination passing write into it, and a buffer view shares it. Every
    other value is a copy, so that nothing written later can change it.
    """

    def __init__(
        self,
        types: Mapping[int, TensorType],
        symbols: Mapping[str, int],
        ranges: Mapping[str, tuple[int, int]] = MappingProxyType({}),
    ) -> None:
        self.symbols = symbols
        self.ranges = ranges
        self.pointer = ""
        self._types = types
        self._arrays: dict[int, Array] = {}

    def dtype(self, var: int) -> DType:
        return self._types[var].dtype

    def shape(self, var: int) -> tuple[int, ...]:
        return self.dims(self._types[var].shape)

    def dim(self, dim: Dim) -> int:
        """The value of a dim under the call's symbols. CallInputError when it has none."""
        try:
            return evaluate_dim(dim, self.symbols)
        except ExprError as error:
            raise CallInputError(f"{dim} has no value: {error}", pointers=[self.pointer]) from error

    def dims(self, dims: Iterable[Dim]) -> tuple[int, ...]:
        return tuple(self.dim(dim) for dim in dims)

    def has(self, var: int) -> bool:
        return var in self._arrays

    def read(self, var: int) -> Array:
        """The present value of a var. A byte that a view or a caller declared bool is true when it is not 0."""
        array = self._arrays[var]
        return array.view(np.uint8) != 0 if array.dtype == np.bool_ else array

    def storage(self, var: int) -> Array:
        """The array behind a var, to be written to or viewed."""
        return self._arrays[var]

    def define(self, var: int, value: Array) -> None:
        """Give a var its value; a var that a buffer declared already is written in place."""
        if var in self._arrays:
            self._arrays[var][...] = value
        else:
            self._arrays[var] = np.array(value, dtype=self.dtype(var).numpy, order="C")

    def share(self, var: int, storage: Array) -> None:
        """Give a var a storage that others may hold too."""
        self._arrays[var] = storage


Evaluator: TypeAlias = Callable[[Any, Scope], Array]
"""Computes a node's value from the node and the scope before it; the scope's `define` copies it."""
