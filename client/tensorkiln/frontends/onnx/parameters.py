"""Host arrays that the graph reads: parameters, which are inputs, or constants where they are scalars of the code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...build import Builder, Tensor, dim_value, pack_array, stack, threefry, unpack
from ...dtypes import DType
from ...errors import UnsupportedGraphError
from .value import Absent, Held, Host, Items, Value

MAX_SIZES = 1 << 12
"""Elements of a shape that is used as data: each adds its nodes to the graph."""


class KeyMissingError(Exception):
    """A model draws random numbers, and its graph has no key for them."""


class Parameters:
    """Turns host arrays into graph inputs on first use and remembers which input holds which array.

    Weights are inputs, so that a model with other weights is the same graph. A scalar that the model computes or spells
    as a node is a constant; a scalar initializer is a weight. A weight of less than 8 bits is a parameter of packed
    bytes, which the graph unpacks. Dims that depend on symbols are computed at the call. Random numbers are drawn under
    `random_key`, a graph input of rank 0.
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

    def is_weight(self, array: Host) -> bool:
        """Whether the array is one of the model's own, and no number that it computes or spells."""
        return id(array) in self._weights

    def _declare(self, array: Host) -> Tensor:
        if array.dtype == object:
            return self._sizes(array)
        dtype = element_type(array.dtype)
        if array.ndim == 0 and not self.is_weight(array):
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

    def _sizes(self, array: Host) -> Tensor:
        """Dims as what they are at the call, in int64."""
        dims = array.reshape(-1).tolist()
        if any(isinstance(item, str | bytes) for item in dims):
            raise UnsupportedGraphError("strings are used as data")
        if not 0 < len(dims) <= MAX_SIZES:
            raise UnsupportedGraphError(
                f"{len(dims)} sizes that depend on symbols are used as data, at most {MAX_SIZES}"
            )
        values = [dim_value(self.builder, dim) for dim in dims]
        return stack(values).reshape(array.shape) if array.ndim else values[0]


class InnerParameters(Parameters):
    """Those of a graph inside of a node, which takes what the graph around has as inputs of its own.

    `taken` are pairs of a tensor there and the input here, by the var there.
    """

    def __init__(self, outer: Parameters) -> None:
        super().__init__(outer.builder.inside(), ())
        self._outer = outer
        self.taken: dict[int, tuple[Tensor, Tensor]] = {}

    def tensor(self, array: Host) -> Tensor:
        """The value of this graph that holds `array`: a weight is one of the outermost graph."""
        if array.ndim == 0 and array.dtype != object and not self.is_weight(array):
            return super().tensor(array)
        return self.capture(self._outer.tensor(array))

    def is_weight(self, array: Host) -> bool:
        return self._outer.is_weight(array)

    def next_key(self) -> Tensor:
        """None: every turn would draw the same."""
        raise UnsupportedGraphError("it draws random numbers in a loop whose turns are counted at run time")

    def capture(self, tensor: Tensor) -> Tensor:
        """A tensor of the graph around as an input of this one."""
        if tensor.var not in self.taken:
            self.taken[tensor.var] = tensor, self.builder.input(tensor.dtype, tensor.shape)
        return self.taken[tensor.var][1]

    def captured(self, held: Held | Absent) -> Held | Absent:
        """Whatever a name stands for in the graph around."""
        if isinstance(held, Tensor):
            return self.capture(held)
        if isinstance(held, Items):
            return Items(tuple(self.capture(each) if isinstance(each, Tensor) else each for each in held.values))
        return held

    def value(self, value: Value) -> Tensor:
        """A value of this graph as a tensor of it."""
        return value if isinstance(value, Tensor) else self.tensor(value)


def element_type(dtype: np.dtype[Any]) -> DType:
    """Our element type of a NumPy one. UnsupportedGraphError when there is none, as for strings and complex numbers."""
    try:
        return DType.from_numpy(dtype)
    except KeyError:
        raise UnsupportedGraphError(f"the element type {dtype} is not supported") from None
