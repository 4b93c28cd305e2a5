"""Host arrays in the graph: parameters, which are inputs, or constants for scalars that the model computes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...build import Builder, Tensor, dim_value, pack_array, stack, threefry, unpack
from ...dtypes import DType
from ...errors import UnsupportedGraphError
from .value import Absent, Held, Host, Items, Value

MAX_SIZES = 1 << 12
"""The most elements of a symbolic shape used as data; each adds nodes to the graph."""


class KeyMissingError(Exception):
    """A node draws random numbers, but the graph has no key."""


class Parameters:
    """Converts host arrays to graph inputs at first use, one input per array.

    Weights are inputs, so that a model with other weights has the same graph. A scalar that the model computes or has
    in a node is a constant; a scalar initializer is a weight, except the limits of a Clip. A weight below 8 bits is a
    parameter of packed bytes, which the graph unpacks. Symbolic dims are computed at the call. Random numbers are
    derived from `random_key`, a graph input of rank 0.
    """

    def __init__(self, builder: Builder, weights: Iterable[Host], random_key: Tensor | None = None) -> None:
        self.builder = builder
        self._random_key, self._drawn = random_key, 0
        self.arrays: dict[int, Host] = {}
        self._weights = {id(array) for array in weights}
        self._tensors: dict[int, tuple[Host, Tensor]] = {}
        self._dims: dict[int, Host] = {}

    def cast_dims(self, dims: Host, dtype: DType) -> Tensor:
        """Dims as a tensor of an integer type, from which `dims_of_cast` returns them."""
        cast = self.tensor(dims).cast(dtype)
        self._dims[cast.var] = dims
        return cast

    def dims_of_cast(self, tensor: Tensor) -> Host | None:
        """The dims that `cast_dims` has cast to this tensor; None for any other."""
        return self._dims.get(tensor.var)

    def tensor(self, array: Host) -> Tensor:
        """The tensor for `array`. UnsupportedGraphError for an unsupported element type."""
        if id(array) not in self._tensors:
            # Keep the array alive, since its id is the key.
            self._tensors[id(array)] = (array, self._declare(array))
        return self._tensors[id(array)][1]

    def next_key(self) -> Tensor:
        """A new key for a node that draws random numbers, derived from the call's key and a counter."""
        if self._random_key is None:
            raise KeyMissingError
        self._drawn += 1
        return threefry(self.builder.scalar(self._drawn, DType.UINT64), self._random_key)

    def is_weight(self, array: Host) -> bool:
        """Whether the array is an initializer of the model, not computed or literal."""
        return id(array) in self._weights

    def _declare(self, array: Host) -> Tensor:
        if array.dtype == object:
            return self._sizes(array)
        dtype = element_type(array.dtype)
        if array.ndim == 0 and not self.is_weight(array):
            return self.builder.constant(array, dtype)
        name = f"parameters/{len(self.arrays)}"
        while name in self.builder.inputs:  # A model's own input may have this name.
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
        """The values of dims at the call, in int64."""
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
    """The parameters of a region, which takes tensors of the outer graph as inputs.

    `taken` are pairs of an outer tensor and the region's input, by the outer var.
    """

    def __init__(self, outer: Parameters) -> None:
        super().__init__(outer.builder.inside(), ())
        self._outer = outer
        self.taken: dict[int, tuple[Tensor, Tensor]] = {}

    def tensor(self, array: Host) -> Tensor:
        """The tensor for `array` in this region; a weight is a parameter of the outermost graph."""
        if array.ndim == 0 and array.dtype != object and not self.is_weight(array):
            return super().tensor(array)
        return self.capture(self._outer.tensor(array))

    def is_weight(self, array: Host) -> bool:
        return self._outer.is_weight(array)

    def next_key(self) -> Tensor:
        """UnsupportedGraphError, because every turn would draw the same numbers."""
        raise UnsupportedGraphError("it draws random numbers in a loop whose turns are counted at run time")

    def capture(self, tensor: Tensor) -> Tensor:
        """The region's input for a tensor of the outer graph."""
        if tensor.var not in self.taken:
            self.taken[tensor.var] = tensor, self.builder.input(tensor.dtype, tensor.shape)
        return self.taken[tensor.var][1]

    def captured(self, held: Held | Absent) -> Held | Absent:
        """Capture any value of the outer graph."""
        if isinstance(held, Tensor):
            return self.capture(held)
        if isinstance(held, Items):
            return Items(tuple(self.capture(each) if isinstance(each, Tensor) else each for each in held.values))
        return held

    def value(self, value: Value) -> Tensor:
        """A value of this region as a tensor."""
        return value if isinstance(value, Tensor) else self.tensor(value)


def element_type(dtype: np.dtype[Any]) -> DType:
    """The DType of a NumPy dtype. UnsupportedGraphError when there is none, as for strings and complex numbers."""
    try:
        return DType.from_numpy(dtype)
    except KeyError:
        raise UnsupportedGraphError(f"the element type {dtype} is not supported") from None
