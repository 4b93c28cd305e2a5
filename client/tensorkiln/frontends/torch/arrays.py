"""Conversion between torch tensors and NumPy arrays, without a copy where possible."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ...errors import CallInputError, DeviceError
from .element_types import dtype_named


def array_of(tensor: Any) -> np.ndarray[Any, Any]:
    """The tensor as a contiguous array over its memory; a copy if it is not contiguous, or is conjugated.

    DeviceError for a tensor on another device, CallInputError for an unsupported element type.
    """
    import torch

    dtype = dtype_named(str(tensor.dtype))
    if dtype is None and tensor.dtype not in (torch.complex64, torch.complex128):
        raise CallInputError(f"a tensor of {tensor.dtype} is given, an element type that is not supported")
    if tensor.device.type != "cpu":
        raise DeviceError(f"a tensor on {tensor.device} is given; these programs take those of the CPU: use .cpu()")
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if plain.dtype is torch.bfloat16:
        return plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return plain.numpy()


def as_pairs(value: Any) -> Any:
    """A complex array with its parts on a last axis; any other value unchanged."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "c":
        return value
    return value[..., np.newaxis].view(value.real.dtype)


def tensor_of(array: np.ndarray[Any, Any]) -> Any:
    """A tensor over the array's memory."""
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
