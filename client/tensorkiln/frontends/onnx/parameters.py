"""Host arrays that the graph reads: parameters, which are inputs, or constants where they are scalars of the code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...build import Builder, Tensor, pack_array, threefry, unpack
from ...dtypes import DType
from ...errors import UnsupportedGraphError
from .value import Host


class KeyMissingError(Exception):
    """A model draws random numbers, and its graph has no key for them."""


class Parameters:
    """Turns host arrays into graph inputs on first use and remembers which input holds which array.

    Weights are inputs, so that a model with other weights is the same graph. A scalar that the model computes or spells
    as a node is a constant; a scalar initializer is a weight. A weight of less than 8 bits is a parameter of packed
    bytes, which the graph unpacks. Random numbers are drawn under `random_key`, a graph input of rank 0.
    """

    def __init__(self, builder: Builder, weights: Iterable[Host], random_key: Tensor | None = None) -> None:
        self.builder = builder
        self._random_key, self._drawn = random_key, 0
        self.arrays: dict[int, Host] = {}
        self._weights = {id(array) for array in weights}
        self._tensors: dict[int, tuple[Host, Tensor]] = {}

    def tensor(self, array: Host) -> Tensor:
        """The value of the graph that holds `array`. UnsupportedGraphError for an element type that graphs lack."""
        if id(array) not in self._tensors:
            # The array is kept beside its tensor: an id means nothing once its array is gone.
            self._tensors[id(array)] = (array, self._declare(array))
        return self._tensors[id(array)][1]

    def next_key(self) -> Tensor:
        """Another key for each node that draws: what the key of the call makes of their number."""
        if self._random_key is None:
            raise KeyMissingError
        self._drawn += 1
        return threefry(self.builder.scalar(self._drawn, DType.UINT64), self._random_key)

    def _declare(self, array: Host) -> Tensor:
        dtype = element_type(array.dtype)
        if array.ndim == 0 and id(array) not in self._weights:
            return self.builder.constant(array, dtype)
        name = f"parameters/{len(self.arrays)}"
        while name in self.builder.inputs:  # A model may call an input of its own so.
            name += "'"
        if dtype.is_narrow and dtype.bits < 8:
            packed = pack_array(array)
            tensor = self.builder.parameter(DType.UINT8, packed.shape, name)
            self.arrays[tensor.var] = packed
            return unpack(tensor, dtype, array.shape)
        tensor = self.builder.parameter(dtype, array.shape, name)
        self.arrays[tensor.var] = np.ascontiguousarray(array).reshape(array.shape)
        return tensor


def element_type(dtype: np.dtype[Any]) -> DType:
    """Our element type of a NumPy one. UnsupportedGraphError when there is none, as for strings and complex numbers."""
    try:
        return DType.from_numpy(dtype)
    except KeyError:
        raise UnsupportedGraphError(f"the element type {dtype} is not supported") from None
