"""Values during a translation: known arrays, tensors that the graph computes, or pairs of these for complex numbers.

A known value that depends on symbols (such as a size of a dynamic tensor) is an array of objects, each an integer or a
dimension expression.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tensorkiln.build import Tensor
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim

Host: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A value computed from constants and sizes alone."""

    array: Host
    dtype: DType

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def is_symbolic(self) -> bool:
        """Whether an element depends on symbols."""
        return self.array.dtype == object

    @property
    def splat(self) -> Any:
        """The common value of all elements, if the array is one broadcast element; None otherwise."""
        array = self.array
        if array.size and (array.size == 1 or not any(array.strides)):
            return array.flat[0]
        return None


Real: TypeAlias = "Tensor | Known"


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Complex numbers: real and imaginary parts of the same shape and float type."""

    real: Real
    imag: Real

    @property
    def shape(self) -> Sequence[Dim]:
        return self.real.shape

    @property
    def dtype(self) -> DType:
        """The type of each part."""
        return self.real.dtype


Value: TypeAlias = "Tensor | Known | Pair"


def known_dims(dims: Iterable[Dim], dtype: DType, shape: tuple[int, ...] | None = None) -> Known:
    """Dims as a known value of rank 1, or of `shape`."""
    listed = list(dims)
    values = np.empty(len(listed), object)
    values[:] = listed
    return settled(values if shape is None else values.reshape(shape), dtype)


def settled(values: Host, dtype: DType) -> Known:
    """A known value of `values`, as numbers if no element depends on symbols; integers wrap to the dtype."""
    if values.dtype != object:
        return Known(values, dtype)
    wrapped = [_wrapped(item, dtype) if isinstance(item, int) else item for item in values.reshape(-1).tolist()]
    if all(isinstance(item, int) for item in wrapped):
        return Known(np.array(wrapped, dtype.numpy).reshape(values.shape), dtype)
    mixed = np.empty(len(wrapped), object)
    mixed[:] = wrapped
    return Known(mixed.reshape(values.shape), dtype)


def _wrapped(value: int, dtype: DType) -> int:
    rest = value & ((1 << dtype.bits) - 1)
    return rest - (1 << dtype.bits) if dtype.is_signed and rest >> (dtype.bits - 1) else rest
