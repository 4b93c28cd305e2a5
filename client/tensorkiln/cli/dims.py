"""Parser of `--dim`: bounds of dynamic dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ..errors import RequestError
from ..frontends.bounds import Bounds

Dims: TypeAlias = Mapping[str, Bounds]


def parse_dims(written: Sequence[str]) -> Dims:
    """Parse inclusive bounds, `n=1:64`, or a fixed size, `n=8`, by the name of the dimension.

    RequestError for other forms, for a repeated name, and for empty bounds.
    """
    dims: dict[str, Bounds] = {}
    for text in written:
        # The name ends at the last `=`: in an ONNX model it may be any text.
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
