"""A reduction over no axes is the identity: on every kind and dtype, static and symbolic, bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import compiled, emulated
from tests.dialect.wire import graph_of, placeholder

Run = Callable[..., tuple[Any, ...]]
VALUES = [dtype for dtype in DType if dtype is not DType.UNIT and not dtype.is_narrow]
KINDS = ("sum", "prod", "max")
RUNS = pytest.mark.parametrize("run", [evaluate, compiled.run, emulated.run], ids=["reference", "cpu", "gpu"])


def every_kind(dtype: DType, rows: int | str) -> Graph:
    """Every kind over no axes: of an input, which it returns as it is, and of a value that is computed."""
    fields = {"axes": [], "dtype": dtype.value}
    twice = {"node": "binop", "op": "mul", "a_var": 0, "b_var": 0, "out_var": 1, "dtype": dtype.value}
    reduced = [
        {"node": "reduce_axis", "reduce_op_kind": kind, "in_var": source, "out_var": 2 + 3 * source + number, **fields}
        for source in (0, 1)
        for number, kind in enumerate(KINDS)
    ]
    nodes = [placeholder(0, [rows, 4], dtype.value), twice, *reduced]
    return graph_of(nodes, range(2, 8), bounds={} if isinstance(rows, int) else {rows: (1, 9)})


@RUNS
@pytest.mark.parametrize("rows", [2, "n"], ids=["static", "symbolic"])
@pytest.mark.parametrize("dtype", VALUES, ids=str)
def test_a_reduction_over_no_axes_is_the_identity(run: Run, dtype: DType, rows: int | str) -> None:
    values = [[-0.0, 0.0, -1.5, 2.5], [float("inf"), -float("inf"), 0.5, 1.0]]
    x = np.array(values if dtype.is_float else [[0, 1, 2, 3], [4, 0, 1, 5]]).astype(dtype.numpy)
    results = run(every_kind(dtype, rows), x, **({} if isinstance(rows, int) else {rows: 2}))
    for result, expected in zip(results, [x] * 3 + [x * x] * 3, strict=True):
        np.testing.assert_array_equal(result.view(np.uint8), expected.view(np.uint8), strict=True)
