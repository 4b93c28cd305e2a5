"""Products in tiles of every size that a thread's share may have, which small results are not given by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from passes.gpu import contraction
from passes.schedule.cost import Cost
from tensorkiln.build import Builder, matmul, relu
from tensorkiln.reference import evaluate
from tests import emulated
from tests.compiled import compiled

TILES = [
    *[((8,), "float32", 130, 21, 140, 4), ((8,), "float16", 130, 21, 140, 4), ((4,), "float64", 70, 9, 67, 4)],
    *[((4,), "int8", 70, 70, 67, 4), ((8,), "int32", 130, 5, 20, 2), ((2,), "float32", 35, 17, 33, 4)],
    *[((8,), "float32", 20, 16, 130, 2), ((8,), "float32", 130, 0, 130, 4)],
]
"""A share, a dtype, rows, depth and columns, and the work-groups that their tiles make."""


@pytest.mark.parametrize(("share", "dtype", "rows", "depth", "columns", "groups"), TILES)
def test_a_product_is_right_in_tiles_of_this_share(
    monkeypatch: pytest.MonkeyPatch, share: tuple[int], dtype: str, rows: int, depth: int, columns: int, groups: int
) -> None:
    monkeypatch.setattr(contraction, "PER_THREAD", share)
    monkeypatch.setattr(contraction, "product_cost", lambda *_: Cost(0.0, 0.0))
    b = Builder("tiles")
    x, y, z = b.input(dtype, (rows, depth)), b.input(dtype, (depth, columns)), b.input(dtype, (columns,))
    b.output(relu(matmul(x, y) + z))
    graph = b.graph()
    rng = np.random.default_rng(5)
    arrays: list[Any] = []
    for shape in ((rows, depth), (depth, columns), (columns,)):
        drawn = rng.integers(-4, 5, shape) if dtype.startswith("int") else rng.standard_normal(shape)
        arrays.append(drawn.astype(dtype))
    (expected,) = evaluate(graph, *arrays)
    kernels = compiled(graph, emulated.TARGET).program.kernels
    assert [kernel.global_size[0] for kernel in kernels if kernel.static_shared_bytes] == ([groups] if depth else [])
    (found,) = emulated.run(graph, *arrays)
    tolerance = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-12}.get(dtype, 0)
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance)
