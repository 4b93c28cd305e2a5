"""Conversion between NumPy arrays and tinygrad tensors and buffers."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ...dtypes import DType
from .element_types import dtype_of, named, theirs
from .installed import installed

Array: TypeAlias = "np.ndarray[Any, Any]"


def array_of_buffer(uop: Any) -> Array:
    """The contents of a realized buffer, as a flat array."""
    return np.frombuffer(uop.buffer.as_memoryview(), named(uop.dtype).numpy)


def array_of(tensor: Any) -> Array:
    """The value of a tensor, at the bound values of its variables. Realizes the tensor if necessary."""
    uop = tensor.uop
    bound = {each: each.src[1].src[1] for each in uop.toposort() if each.op.name == "AFTER" and each.is_bound_var}
    settled = installed().Tensor(uop.substitute(bound, walk=True)) if bound else tensor
    dtype, shape = dtype_of(uop), settled.shape
    if uop.device is None:
        # A constant has no device; place it on the default one, not on a device that tinygrad chooses.
        settled = settled.cast(theirs(dtype)).clone(installed().Device.DEFAULT)
    if 0 in shape:
        return np.empty(shape, dtype.numpy)
    if dtype.numpy.kind == "V" or dtype.is_half:
        # NumPy or Python's buffer protocol lacks the type: transfer its bits as an integer type.
        same_size = {1: "uint8", 2: "uint16"}[dtype.itemsize]
        return np.asarray(settled.bitcast(getattr(installed().dtypes, same_size)).numpy()).view(dtype.numpy)
    return np.asarray(settled.numpy())


def tensor_of(array: Array, device: Any) -> Any:
    """A realized tinygrad tensor with these elements, on `device`."""
    dtype = DType.from_numpy(array.dtype)
    flat = installed().Tensor(np.ascontiguousarray(array).tobytes(), dtype=theirs(dtype), device=device)
    return flat.reshape(array.shape).contiguous().realize()


def write_buffer(uop: Any, array: Array) -> None:
    """Replace the contents of a realized buffer."""
    device = installed("tinygrad.device")
    contents = memoryview(bytearray(np.ascontiguousarray(array).tobytes()))
    uop.buffer.copy_from(device.Buffer("PYTHON", uop.buffer.size, uop.dtype, opaque=contents))
