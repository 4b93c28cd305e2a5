"""Unsupported operators, with the reason that errors and the manual state."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_BY_VALUES = "the shape of its result depends on values: keep the shape, and choose with where"
_READS = "it makes a number of Python of a value, on which shapes and branches would depend: keep it a tensor"
_WRITES = "it writes into its argument; torch.export and torch.compile put what it computes in its place"
_REPLACED = "torch decomposes it to others: save the program after run_decompositions()"

REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "aten._local_scalar_dense.default": _READS,
        "aten._native_batch_norm_legit.default": _WRITES,
        "aten._unique2.default": _BY_VALUES,
        "aten.atan2.out": _WRITES,
        "aten.masked_select.default": _BY_VALUES,
        "aten.native_group_norm_backward.default": _REPLACED,
        "aten.native_layer_norm_backward.default": _REPLACED,
        "aten.nonzero.default": _BY_VALUES,
        "aten.repeat_interleave.Tensor": _BY_VALUES,
        "aten.resize_.default": _WRITES,
        "aten.unique_consecutive.default": _BY_VALUES,
        "aten.unique_dim.default": _BY_VALUES,
    }
)
"""The reason by operator. Includes every core ATen operator that this importer lacks."""
