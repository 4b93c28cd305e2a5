"""A graph whose compile takes long enough to be met at it, and whose results tell whether it was compiled right."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LENGTH = 200


def chain(rows: int, length: int = LENGTH) -> dict[str, Any]:
    """y = sqrt(y + x), from y = x, so many times over for x: float32[rows]: rounding does not add up in it."""
    nodes: list[dict[str, Any]] = [{"node": "placeholder", "out_var": 0, "dtype": "float32", "shape": [rows]}]
    for y in range(0, 2 * length, 2):
        nodes += [
            {"node": "binop", "op": "add", "a_var": y, "b_var": 0, "out_var": y + 1, "dtype": "float32"},
            {"node": "unary", "op": "sqrt", "in_var": y + 1, "out_var": y + 2, "dtype": "float32"},
        ]
    return {"schema": 1, "name": "chain", "nodes": nodes, "input_vars": [0], "output_vars": [2 * length]}


def chained(x: NDArray[np.float32], length: int = LENGTH) -> NDArray[np.float32]:
    """What it comes to."""
    y = x
    for _ in range(length):
        y = np.sqrt(y + x)
    return y
