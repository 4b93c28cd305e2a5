"""The memory layout of torch tensors, from which aliasing results are rebuilt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import UnsupportedGraphError
from ...expr import Dim, ExprError, evaluate, mul
from .arrays import tensor_of
from .exported import Array
from .from_fx import size_of


@dataclass(frozen=True, slots=True)
class Layout:
    """Strides of each axis, and the offset of the first element, in elements."""

    strides: tuple[Dim, ...]
    offset: Dim


def layout_of(value: Any) -> Layout | None:
    """The layout of a torch tensor; None when it is row-major and contiguous, or when `value` is not a tensor.

    UnsupportedGraphError for a layout that is not a polynomial of sizes.
    """
    import torch

    if not isinstance(value, torch.Tensor):
        return None
    strides, offset = tuple(map(size_of, value.stride())), size_of(value.storage_offset())
    dense: list[Dim] = []
    step: Dim = 1
    for each in reversed(value.shape):
        dense.insert(0, step)
        step = mul(step, size_of(each))
    return None if offset == 0 and strides == tuple(dense) else Layout(strides, offset)


def laid_out(array: Array, layout: Layout | None, symbols: Mapping[str, int]) -> Any:
    """A tensor with the array's elements, in new memory with the given layout.

    UnsupportedGraphError when the layout depends on a size that no argument determines.
    """
    found = tensor_of(array)
    if layout is None:
        return found
    try:
        strides = tuple(evaluate(stride, symbols) for stride in layout.strides)
        offset = evaluate(layout.offset, symbols)
    except ExprError as error:
        raise UnsupportedGraphError(
            f"how a result of shape {list(array.shape)} lies in memory is not known: {error}; return its .clone()"
        ) from error
    if offset == 0 and strides == found.stride():
        return found
    import torch

    reach = sum((size - 1) * stride for size, stride in zip(array.shape, strides, strict=True))
    whole = np.zeros(offset + reach + 1 if array.size else 0, array.dtype)
    if array.size:
        steps = [stride * whole.itemsize for stride in strides]
        np.lib.stride_tricks.as_strided(whole[offset:], array.shape, steps)[...] = array
    # Built on the storage, not as a view: torch would rebuild a view from its base.
    memory = tensor_of(whole)
    return torch.empty(0, dtype=memory.dtype).set_(memory.untyped_storage(), offset, array.shape, strides)
