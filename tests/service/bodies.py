"""Bodies of requests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

V3 = "cpu:x86-64-v3"


def graph(
    op: str = "exp2",
    *,
    name: str = "g",
    symbol: str = "n",
    bound: int = 64,
    first_var: int = 1,
    rows: int = 4,
    reverse: bool = False,
) -> dict[str, Any]:
    """op(x) and neg(x) of x: float32[rows, symbol]."""
    x, left, right = first_var, first_var + 1, first_var + 2
    unary = [
        {"node": "unary", "op": op, "in_var": x, "out_var": left, "dtype": "float32"},
        {"node": "unary", "op": "neg", "in_var": x, "out_var": right, "dtype": "float32"},
    ]
    return {
        "schema": 1,
        "name": name,
        "nodes": [
            {"node": "placeholder", "out_var": x, "dtype": "float32", "shape": [rows, symbol]},
            *(reversed(unary) if reverse else unary),
        ],
        "vars_metadata": {},
        "input_vars": [x],
        "output_vars": [left, right],
        "symbolic_vars": [{"name": symbol, "min_val": 1, "max_val": bound}],
    }


def compile_body(
    wire: dict[str, Any] | None = None, target: str | Sequence[str] = V3, **options: bool | str
) -> dict[str, Any]:
    """A body of POST /compile."""
    return {"graph": wire or graph(), "target": target, **({"options": options} if options else {})}


def encoded(body: Any) -> bytes:
    return json.dumps(body).encode()
