"""Arrays of NumPy's from what tinygrad holds, and back."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ...dtypes import DType
from .element_types import dtype_of, named, theirs
from .installed import installed

Array: TypeAlias = "np.ndarray[Any, Any]"


def array_of_buffer(uop: Any) -> Array:
    """A copy of what a realized buffer holds, in one dimension."""
    return np.frombuffer(uop.buffer.as_memoryview(), named(uop.dtype).numpy)


def array_of(tensor: Any) -> Array:
    """The value of a tensor, whose variables have the values that they are bound to. It is realized if it was not."""
    uop = tensor.uop
    bound = {each: each.src[1].src[1] for each in uop.toposort() if each.op.name == "AFTER" and each.is_bound_var}
    settled = installed().Tensor(uop.substitute(bound, walk=True)) if bound else tensor
    dtype, shape = dtype_of(uop), settled.shape
    if uop.device is None:
        # A constant lies nowhere; tinygrad would compute it on a device of its own choice.
        settled = settled.cast(theirs(dtype)).clone(installed().Device.DEFAULT)
    if 0 in shape:
        return np.empty(shape, dtype.numpy)
    if dtype.numpy.kind == "V" or dtype.is_half:
        # NumPy has no such type, or Python's buffers have not.
        same_size = {1: "uint8", 2: "uint16"}[dtype.itemsize]
        return np.asarray(settled.bitcast(getattr(installed().dtypes, same_size)).numpy()).view(dtype.numpy)
    return np.asarray(settled.numpy())


def tensor_of(array: Array, device: Any) -> Any:
    """A realized tensor of these elements on a device of tinygrad's."""
    dtype = DType.from_numpy(array.dtype)
    flat = installed().Tensor(np.ascontiguousarray(array).tobytes(), dtype=theirs(dtype), device=device)
    return flat.reshape(array.shape).contiguous().realize()


def write_buffer(uop: Any, array: Array) -> None:
    """Replace what a realized buffer holds."""
    device = installed("tinygrad.device")
    contents = memoryview(bytearray(np.ascontiguousarray(array).tobytes()))
    uop.buffer.copy_from(device.Buffer("PYTHON", uop.buffer.size, uop.dtype, opaque=contents))
