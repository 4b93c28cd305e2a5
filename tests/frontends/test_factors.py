"""Factors of matrices and solutions of linear systems, against NumPy, by the reference and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.frontends.composed.elimination import lu
from tensorkiln.frontends.composed.reflections import orthogonal, reflected
from tensorkiln.frontends.composed.repeating import diagonal
from tensorkiln.frontends.composed.rotations import MOST_ROTATED, eigenvectors, singular_values
from tensorkiln.frontends.composed.triangular import cholesky, triangular_solution
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import shared

Array = np.ndarray[Any, Any]
Shape = tuple[int | str, ...]
NEAR = {"float32": 2e-5, "float64": 1e-12}
BATCH = 3
"""The value of the symbol n in shapes."""


def both(function: Callable[..., Sequence[Tensor]], shapes: Sequence[Shape], *arrays: Array) -> list[list[Array]]:
    """The results by the reference, and compiled for this machine in guarded memory."""
    b = Builder("factors")
    if any("n" in shape for shape in shapes):
        b.symbol("n", 1, 8)
    b.output(*function(*(b.input(str(array.dtype), shape) for shape, array in zip(shapes, arrays, strict=True))))
    graph = b.graph()
    sizes = {"n": BATCH} if graph.symbols else {}
    return [list(evaluate(graph, *arrays, **sizes)), list(checked.run(shared(graph), *arrays, **sizes))]


def drawn(shape: Shape, dtype: str = "float32", seed: int = 1) -> Array:
    sizes = [BATCH if dim == "n" else int(dim) for dim in shape]
    return np.random.default_rng(seed).normal(size=sizes).astype(dtype)


def near(found: Array, wanted: Array) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    scale = max(1e-30, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(found / scale, wanted / scale, atol=NEAR[str(wanted.dtype)], rtol=0)


def transposed(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), ("n", 5), (5, "n"), (2, "n"), ("n", 2), (2, "n", "n")])
def test_a_diagonal_has_the_lesser_of_both_sizes(shape: Shape) -> None:
    x = drawn(shape)
    for (found,) in both(lambda x: [diagonal(x)], [shape], x):
        np.testing.assert_array_equal(found, np.diagonal(x, axis1=-2, axis2=-1))


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 3, 7, 7), ("n", 4, 4), ("n", "n")])
def test_a_lower_factor_is_that_of_numpy(shape: Shape, dtype: str) -> None:
    x = drawn(shape, dtype)
    whole = x @ transposed(x) + np.eye(x.shape[-1], dtype=dtype)
    # The upper triangle is not read.
    given = np.where(np.tri(x.shape[-1]) > 0, whole, np.nan).astype(dtype)
    for (found,) in both(lambda x: [cholesky(x)], [shape], given):
        near(found, np.linalg.cholesky(whole))


@pytest.mark.parametrize("bad", [0, 1, 3])
def test_a_matrix_that_is_not_definite_shows_it_on_the_diagonal(bad: int) -> None:
    x = np.diag(np.array([2, 3, 1, 4, 5], np.float32))
    x[bad, bad] = -1.0
    for (found,) in both(lambda x: [cholesky(x)], [(5, 5)], x):
        shown = ~(np.diagonal(found) > 0)
        assert shown.argmax() == bad
        assert shown.any()


@pytest.mark.parametrize("is_unit", [False, True])
@pytest.mark.parametrize("is_lower", [False, True])
@pytest.mark.parametrize(
    ("shape", "right"), [((4, 4), (4, 1)), ((2, 6, 6), (2, 6, 3)), (("n", 3, 3), ("n", 3, 2)), (("n", "n"), ("n", 2))]
)
def test_a_triangular_system_is_solved_without_the_other_triangle(
    shape: Shape, right: Shape, is_lower: bool, is_unit: bool
) -> None:
    x, b = drawn(shape, "float64"), drawn(right, "float64", 2)
    size = x.shape[-1]
    x += 3 * np.eye(size)
    triangle = np.tri(size) if is_lower else np.tri(size).T
    read = triangle - np.eye(size) if is_unit else triangle
    used = np.where(read > 0, x, np.eye(size) if is_unit else 0)
    given = np.where(read > 0, x, np.nan)
    made = both(lambda x, b: [triangular_solution(x, b, is_lower=is_lower, is_unit=is_unit)], [shape, right], given, b)
    for (found,) in made:
        near(found, np.linalg.solve(used, b))


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (6, 3), (3, 6), (2, 4, 4), ("n", 5, 4)])
def test_lu_factors_multiply_to_the_exchanged_rows(shape: Shape, dtype: str) -> None:
    x = drawn(shape, dtype)
    height, width = x.shape[-2:]
    least = min(height, width)
    for factors, exchanges in both(lu, [shape], x):
        moved = x.copy().reshape(-1, height, width)
        for matrix, swaps in zip(moved, exchanges.reshape(-1, least), strict=True):
            for at, other in enumerate(swaps):
                matrix[[at, other]] = matrix[[other, at]]
        lower = np.tril(factors, -1)[..., :least] + np.eye(height, least, dtype=dtype)
        near(lower @ np.triu(factors)[..., :least, :], moved.reshape(x.shape))
        assert np.abs(np.tril(factors, -1)).max(initial=0) <= 1


def test_a_column_of_zeros_gives_a_pivot_of_0_and_finite_factors() -> None:
    x = np.array([[1, 2, 3], [2, 4, 7], [1, 2, 5]], np.float32)
    for factors, _ in both(lu, [(3, 3)], x):
        assert np.isfinite(factors).all()
        assert 0 in np.diagonal(factors)


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (6, 3), (3, 6), (1, 4), (4, 1), (2, 5, 4), ("n", 5, 4)])
def test_qr_factors_are_those_of_numpy(shape: Shape, dtype: str) -> None:
    x = drawn(shape, dtype)
    wanted = np.linalg.qr(x)
    least = min(x.shape[-2:])

    def function(x: Tensor) -> list[Tensor]:
        found, factors = reflected(x)
        return [found, orthogonal(found, factors, least)]

    for found, q in both(function, [shape], x):
        near(q, wanted.Q)
        near(np.triu(found)[..., :least, :], wanted.R)


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_reflections_of_small_and_large_numbers_keep_their_digits(scale: float) -> None:
    x = (drawn((6, 4)) * scale).astype(np.float32)
    for found, _ in both(reflected, [(6, 4)], x):
        near(np.triu(found)[:4], np.linalg.qr(x.astype(np.float64)).R.astype(np.float32))


SYMMETRIC = {
    "drawn": drawn((7, 7)),
    "even": drawn((6, 6)),
    "one": np.array([[-3]], np.float32),
    "two": np.array([[2, 1], [1, 2]], np.float32),
    "equal": np.eye(5, dtype=np.float32) * 2,
    "zeros": np.zeros((6, 6), np.float32),
    "small": drawn((5, 5)) * np.float32(1e-12),
    "large": drawn((5, 5)) * np.float32(1e12),
    "graded": np.diag(np.array([1e-6, 1, 1e6], np.float32)) + np.float32(1e-8),
    "several": drawn((2, 5, 5)),
    "wide": drawn((9, 9), "float64"),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_eigenvectors_are_orthogonal_and_make_the_matrix(name: str) -> None:
    x = (SYMMETRIC[name] + transposed(SYMMETRIC[name])) / 2
    # The upper triangle is not read.
    given = np.where(np.tri(x.shape[-1]) > 0, x, np.nan).astype(x.dtype)
    for values, vectors in both(eigenvectors, [x.shape], given):
        near(values, np.linalg.eigvalsh(x.astype(np.float64)).astype(x.dtype))
        near((vectors * values[..., None, :]) @ transposed(vectors), x)
        near(transposed(vectors) @ vectors, np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape))


def test_eigenvectors_of_a_symbolic_number_of_matrices() -> None:
    x = drawn(("n", 4, 4), "float64")
    x = x + transposed(x)
    for values, vectors in both(eigenvectors, [("n", 4, 4)], x):
        near(values, np.linalg.eigvalsh(x))
        near((vectors * values[..., None, :]) @ transposed(vectors), x)


GENERAL = {
    "tall": drawn((7, 4)),
    "wide": drawn((3, 6)),
    "square": drawn((5, 5), "float64"),
    "row": drawn((1, 4)),
    "column": drawn((4, 1)),
    "of rank 1": np.outer(np.arange(1, 8), np.arange(1, 5)).astype(np.float32),
    "zeros": np.zeros((7, 4), np.float32),
    "several": drawn((2, 5, 4), "float64"),
    "small": drawn((7, 4)) * np.float32(1e-12),
}


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("name", GENERAL)
def test_singular_vectors_are_orthogonal_and_make_the_matrix(name: str, is_full: bool) -> None:
    x = GENERAL[name]
    least = min(x.shape[-2:])
    for left, values, right in both(lambda x: singular_values(x, is_full=is_full), [x.shape], x):
        near(values, np.linalg.svd(x.astype(np.float64), compute_uv=False).astype(x.dtype))
        near((left[..., :least] * values[..., None, :]) @ right[..., :least, :], x)
        for found in (transposed(left) @ left, right @ transposed(right)):
            near(found, np.broadcast_to(np.eye(found.shape[-1], dtype=x.dtype), found.shape))
        if is_full:
            assert (left.shape[-1], right.shape[-1]) == x.shape[-2:]


def test_singular_values_of_a_symbolic_number_of_matrices() -> None:
    x = drawn(("n", 5, 3), "float64")
    for _, values, _ in both(singular_values, [("n", 5, 3)], x):
        near(values, np.linalg.svd(x, compute_uv=False))


@pytest.mark.parametrize("shape", [("n", "n"), (MOST_ROTATED + 1,) * 2])
@pytest.mark.parametrize("function", [eigenvectors, singular_values])
def test_rotations_of_a_symbolic_or_large_number_of_columns_are_refused(
    function: Callable[[Tensor], Sequence[Tensor]], shape: Shape
) -> None:
    b = Builder("factors")
    b.symbol("n", 1, 8)
    with pytest.raises(UnsupportedGraphError, match=f"are not rotated, only static ones, of up to {MOST_ROTATED} rows"):
        function(b.input("float32", shape))
