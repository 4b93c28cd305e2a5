"""Products that nothing follows: their tiles are stored where they belong, and no further."""

from __future__ import annotations

import numpy as np
import pytest

from passes.compile import Compilation
from tensorkiln.build import Builder, relu
from tensorkiln.graph import Graph
from tests import checked
from tests.compiled import compiled, proven, runs_here

EDGES = (
    (17, 300, 33),
    (57, 129, 600),
    (130, 260, 100),
    (20, 140, 65),
    (36, 64, 128),
    (23, 40, 81),
)
"""Rows, depth and columns: parts of tiles of two and of four vectors, more than a block of the depth and of columns,
and whole tiles only.
"""


def product(rows: int, depth: int, columns: int, dtype: str, *, symbolic: str = "", batch: int = 1) -> Graph:
    b = Builder("product")
    m, k, n = (
        b.symbol(name, 1, 1024) if name in symbolic else extent
        for name, extent in zip("mkn", (rows, depth, columns), strict=True)
    )
    b.output(b.input(dtype, (batch, m, k)) @ b.input(dtype, (batch, k, n)))
    return b.graph()


def check(product: Compilation, extents: tuple[int, int, int], symbolic: str = "", batch: int = 1) -> None:
    """Against NumPy in twice the bits, in memory that ends where the operands do."""
    rows, depth, columns = extents
    rng = np.random.default_rng(rows)
    dtype = product.program.inputs[0].dtype.numpy
    x, w = (rng.integers(-4, 5, (batch, *shape)).astype(dtype) for shape in ((rows, depth), (depth, columns)))
    symbols = {name: extent for name, extent in zip("mkn", extents, strict=True) if name in symbolic}
    (result,) = checked.run(product, x, w, threads=2, **symbols)
    np.testing.assert_array_equal(result, (x.astype(np.float64) @ w.astype(np.float64)).astype(dtype))


@pytest.mark.parametrize("extents", EDGES)
@pytest.mark.parametrize("target", ["cpu:x86-64-v3", "cpu:x86-64-v4"])
def test_tiles_at_the_edges_are_stored_in_part(extents: tuple[int, int, int], target: str) -> None:
    if not runs_here(target):
        pytest.skip(f"{target} does not run here")
    check(proven(product(*extents, "float32"), target), extents)


@pytest.mark.parametrize(("rows", "runs", "dtype"), [(10, 5, "float32"), (128, 10, "float32"), (20, 5, "float64")])
@pytest.mark.parametrize("target", ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4"])
def test_blocks_begin_where_runs_of_the_right_operand_do(rows: int, runs: int, dtype: str, target: str) -> None:
    if not runs_here(target):
        pytest.skip(f"{target} does not run here")
    depth, run = 20, 64
    b = Builder("runs")
    x, y = b.input(dtype, (rows, depth)), b.input(dtype, (runs, depth, run))
    extents = (rows, runs, depth, run)
    b.output((x.reshape([rows, 1, depth, 1]).expand(extents) * y.reshape([1, *extents[1:]]).expand(extents)).sum(2))
    rng = np.random.default_rng(rows)
    arrays = [rng.integers(-4, 5, shape).astype(dtype) for shape in ((rows, depth), (runs, depth, run))]
    (result,) = checked.run(compiled(b.graph(), target), *arrays, threads=2)
    np.testing.assert_array_equal(result, np.einsum("mk,okc->moc", *arrays))


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_tiles_of_other_dtypes_are_stored_in_part(dtype: str) -> None:
    extents = (23, 140, 37)
    check(proven(product(*extents, dtype, batch=3)), extents, batch=3)


@pytest.mark.parametrize("symbolic", ["m", "n", "k", "mkn"])
def test_tiles_of_symbolic_products_are_stored_in_part(symbolic: str) -> None:
    compilation = proven(product(41, 300, 70, "float32", symbolic=symbolic))
    for rows, depth, columns in ((5, 40, 33), (41, 300, 70)):
        given = zip("mkn", (rows, depth, columns), (41, 300, 70), strict=True)
        m, k, n = (extent if name in symbolic else fixed for name, extent, fixed in given)
        check(compilation, (m, k, n), symbolic)


def test_a_product_that_nothing_follows_needs_no_block_for_its_result() -> None:
    def scratches(*, followed: bool) -> int:
        b = Builder("product")
        y = b.input("float32", (64, 512)) @ b.input("float32", (512, 256))
        b.output(relu(y) if followed else y)
        buffers = compiled(b.graph(), "cpu:x86-64-v3").program.buffers
        return sum(buffer.role == "scratch" for buffer in buffers)

    assert scratches(followed=False) == scratches(followed=True) - 1
