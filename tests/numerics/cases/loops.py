"""Loops whose turns an input counts: what is carried is swapped and flipped in every turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorkiln.dtypes import DType

from .family import Family
from .shapes import shape
from .sketch import Sketch, wire

Node = dict[str, Any]
MOST = 4


def draw_while(sketch: Sketch, dtype: DType, _op: str) -> None:
    """No turn, one or several; what is carried is an input, or twice the same one."""
    dims = shape(sketch, low_rank=1)
    x = sketch.input(dtype, dims)
    y = sketch.input(dtype, dims) if sketch.flag() else x
    count = sketch.input_of(np.array(sketch.integer(0, MOST), np.int32))
    turn = sketch.constant(DType.INT32, 0)
    results = [sketch.fresh()]
    sketch.define(results[0], DType.INT32, ())
    for var in (x, y):
        results.append(sketch.fresh())
        sketch.define(results[-1], dtype, sketch.dims(var))
    given = [
        {"node": "placeholder", "out_var": 0, "dtype": "int32", "shape": []},
        *({"node": "placeholder", "out_var": var, "dtype": dtype, "shape": wire(dims)} for var in (1, 2)),
        {"node": "placeholder", "out_var": 3, "dtype": "int32", "shape": []},
    ]
    goes_on: Node = {"node": "binop", "op": "cmplt", "a_var": 0, "b_var": 3, "out_var": 4, "dtype": "bool"}
    flip: Node = {"node": "flip", "in_var": 2, "axes": [sketch.integer(0, len(dims) - 1)], "out_var": 4, "dtype": dtype}
    one: Node = {"node": "const_scalar", "value": 1, "out_var": 5, "dtype": "int32"}
    next_turn: Node = {"node": "binop", "op": "add", "a_var": 0, "b_var": 5, "out_var": 6, "dtype": "int32"}
    sketch.write(
        {
            "node": "while",
            "condition": {"nodes": [*given, goes_on], "input_vars": [0, 1, 2, 3], "output_vars": [4]},
            "body": {"nodes": [*given, flip, one, next_turn], "input_vars": [0, 1, 2, 3], "output_vars": [6, 4, 1]},
            "in_vars": [turn, x, y, count],
            "output_vars": results,
            "most": MOST,
        }
    )
    sketch.output(*results)


FAMILIES = {"while": Family((DType.FLOAT32, DType.BOOL), draw_while)}
