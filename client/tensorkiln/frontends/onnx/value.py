"""Values during an import: known on the host, or computed by the graph; sequences and empty optionals.

A host value is an array. One that depends on symbols (from the shape of a tensor) is an array of objects, each an
integer or a dimension expression; arithmetic on it is arithmetic of dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...build import Tensor
from ...expr import Dim

Host: TypeAlias = "np.ndarray[Any, Any]"
Value: TypeAlias = "Tensor | Host"
Held: TypeAlias = "Value | Items | Nothing"
"""The value of a name. Graphs have only tensors, so the import resolves sequences and optionals."""
MAX_GROWN_ELEMENTS = 1 << 28
"""The most elements of a host value computed from smaller ones; the graph computes larger values."""


@dataclass(frozen=True, slots=True)
class Items:
    """A sequence, whose length is known during the import."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Nothing:
    """An empty optional. A filled one is represented by its value."""


@dataclass(frozen=True, slots=True)
class Absent:
    """An output that the import does not compute; an error only if it is read."""

    reason: str


def host_dims(dims: Iterable[Dim]) -> Host:
    """Dims as a host value of rank 1: int64 when all are static."""
    listed = list(dims)
    result = np.empty(len(listed), object)
    result[:] = listed
    return settled(result)


def settled(values: Host) -> Host:
    """`values` as int64 when it holds no expression any more; an array of numbers is returned as it is."""
    if values.dtype != object or not all(isinstance(item, int) for item in values.reshape(-1).tolist()):
        return values
    return values.astype(np.int64)


def dims_of(values: Host) -> list[Dim]:
    """The elements of an integer host value of rank 0 or 1 as dims. ValueError for another rank."""
    if values.ndim > 1:
        raise ValueError(f"a list of integers has rank 1, not {values.ndim}")
    return [item if not isinstance(item, np.integer) else int(item) for item in values.reshape(-1).tolist()]


def as_objects(values: Host) -> Host:
    """`values` with Python integers or dims as elements."""
    return values if values.dtype == object else values.astype(object)
