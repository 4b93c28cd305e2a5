"""Known values as constants of the graph; equal ones share a node."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np

from tensorkiln import build
from tensorkiln.build import Builder, Tensor
from tensorkiln.build.constant import MAX_TABLE_ELEMENTS
from tensorkiln.build.dimension import dim_value
from tensorkiln.expr import Dim

from .value import Known

Over: TypeAlias = "Callable[[str, str, int, int], NoReturn]"
"""`over(message, limit, maximum, actual)` raises LimitExceededError."""

MAX_CONSTANT_ELEMENTS: Final = 1 << 18
"""The most elements of all tables of a graph together, since its text lists each."""
MAX_SIZES: Final = 1 << 10
"""The most elements of a table that depends on sizes; each adds nodes to the graph."""

_ADVICE: Final = "make it an argument of the module's main function"


def too_large(size: int) -> str:
    """The error message for a constant of `size` elements."""
    return f"a constant has {size} elements; the limit is {MAX_TABLE_ELEMENTS}: {_ADVICE}"


class Constants:
    """The constants of one graph."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._tables: dict[tuple[Any, ...], Tensor] = {}
        self._elements = 0

    def tensor(self, value: Known, over: Over) -> Tensor:
        """The tensor of a known value. LimitExceededError for a table that is too large."""
        splat = value.splat
        if value.is_symbolic:
            return self._of_dims(value, over) if splat is None else self._of_one(splat, value)
        if splat is not None:
            return build.full(self._builder, value.shape, splat, value.dtype)
        if not value.array.size:
            return build.zeros(self._builder, value.shape, value.dtype)
        return self._table(value, over)

    def _of_one(self, dim: Dim, value: Known) -> Tensor:
        scalar = dim_value(self._builder, dim, value.dtype)
        return build.expand(scalar.reshape([1] * len(value.shape)), list(value.shape)) if value.shape else scalar

    def _of_dims(self, value: Known, over: Over) -> Tensor:
        size = value.array.size
        if size > MAX_SIZES:
            over(
                f"a constant has {size} elements that depend on sizes of dimensions; the limit is {MAX_SIZES}",
                "constant_sizes",
                MAX_SIZES,
                size,
            )
        scalars = [dim_value(self._builder, dim, value.dtype) for dim in value.array.reshape(-1).tolist()]
        return build.stack(scalars).reshape(list(value.shape))

    def _table(self, value: Known, over: Over) -> Tensor:
        size = value.array.size
        if size > MAX_TABLE_ELEMENTS:
            over(too_large(size), "constant_elements", MAX_TABLE_ELEMENTS, size)
        array = np.ascontiguousarray(value.array)
        key = (value.dtype, value.shape, sha256(array.tobytes()).digest())
        if key not in self._tables:
            self._elements += size
            if self._elements > MAX_CONSTANT_ELEMENTS:
                over(
                    f"the constants so far have {self._elements} elements, the limit is {MAX_CONSTANT_ELEMENTS}: "
                    f"the last of them has {size}; {_ADVICE}",
                    "constants_elements",
                    MAX_CONSTANT_ELEMENTS,
                    self._elements,
                )
            self._tables[key] = self._builder.constant(array, value.dtype)
        return self._tables[key]
