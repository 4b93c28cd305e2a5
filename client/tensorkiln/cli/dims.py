"""Bounds of dynamic dimensions, as `--dim` has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ..errors import RequestError
from ..frontends.bounds import Bounds

Dims: TypeAlias = Mapping[str, Bounds]


def parse_dims(written: Sequence[str]) -> Dims:
    """By the name of a dimension its inclusive bounds, `n=1:64`, or the size that fixes it, `n=8`.

    RequestError for what is written otherwise, for a name that is there twice, and for bounds between which nothing is.
    """
    dims: dict[str, Bounds] = {}
    for text in written:
        # What stands before the last sign is the name, which in an ONNX model may be any text.
        name, _, size = text.rpartition("=")
        if name in dims:
            raise RequestError(f"--dim {text}: {name} has bounds already; give them once.")
        low, is_range, high = size.partition(":")
        try:
            bounds = int(low), int(high if is_range else low)
        except ValueError:
            raise RequestError(f"--dim {text}: write it as NAME=MIN:MAX, or NAME=SIZE to fix it.") from None
        if not name or not 0 <= bounds[0] <= bounds[1]:
            raise RequestError(f"--dim {text}: a name, and 0 <= MIN <= MAX, are needed.")
        dims[name] = bounds if is_range else bounds[0]
    return dims
