"""A warning for graphs whose arrays fit few machines, often because of a mistaken size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from .dtypes import DType
from .expr import Dim, ExprError, evaluate

LARGE_BYTES: Final = 32 << 30
_SHOWN: Final = 4
_SMALL: Final = 1 << 30


class LargeGraphWarning(UserWarning):
    """The inputs and outputs of a graph take more memory than most machines have."""


def said_of_large(arrays: Iterable[tuple[str, DType, tuple[Dim, ...]]], symbols: Mapping[str, tuple[int, int]]) -> str:
    """The warning for arrays that take more than `LARGE_BYTES` at the least values of the symbols; else empty."""
    least = {name: low for name, (low, _) in symbols.items()}
    sizes = [(name, _bytes(dtype, shape, least)) for name, dtype, shape in arrays]
    total = sum(size for _, size in sizes)
    if total <= LARGE_BYTES:
        return ""
    largest = sorted(sizes, key=lambda each: -each[1])[:_SHOWN]
    named = ", ".join(f"{name} {in_gb(size)}" for name, size in largest if size >= _SMALL)
    at = " at the least values of its symbols" if symbols else ""
    return f"the inputs and outputs of the graph take {in_gb(total)}{at} ({named}): check their shapes and dtypes"


def in_gb(size: int) -> str:
    """Bytes in gigabytes, with three digits."""
    return f"{size / 1e9:.3g} GB"


def _bytes(dtype: DType, shape: tuple[Dim, ...], least: Mapping[str, int]) -> int:
    """The size of an array; 0 if a quotient in its shape has no value there, since a call with these values fails."""
    size = dtype.itemsize
    try:
        for dim in shape:
            size *= max(0, evaluate(dim, least))
    except ExprError:
        return 0
    return size
