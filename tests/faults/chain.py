"""A graph whose compile takes long enough to be met at it, and whose results tell whether it was compiled right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LENGTH = 200


def chain(rows: int, length: int = LENGTH) -> dict[str, Any]:
    """y = sqrt(y + x + k), from y = x, for k = 0, 1, …, so many times over for x: float32[rows].

    Rounding does not add up in it, and no two of its kernels are equal.
    """
    nodes: list[dict[str, Any]] = [{"node": "placeholder", "out_var": 0, "dtype": "float32", "shape": [rows]}]
    for step, y in enumerate(range(0, 4 * length, 4)):
        nodes += [
            {"node": "const_scalar", "value": float(step), "out_var": y + 1, "dtype": "float32"},
            {"node": "binop", "op": "add", "a_var": y, "b_var": 0, "out_var": y + 2, "dtype": "float32"},
            {"node": "binop", "op": "add", "a_var": y + 2, "b_var": y + 1, "out_var": y + 3, "dtype": "float32"},
            {"node": "unary", "op": "sqrt", "in_var": y + 3, "out_var": y + 4, "dtype": "float32"},
        ]
    return {"schema": 1, "name": "chain", "nodes": nodes, "input_vars": [0], "output_vars": [4 * length]}


def chained(x: NDArray[np.float32], length: int = LENGTH) -> NDArray[np.float32]:
    """What it comes to."""
    y = x
    for step in range(length):
        y = np.sqrt(y + x + np.float32(step))
    return y
