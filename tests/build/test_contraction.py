"""Matrix products and normalisations against NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tensorkiln.build import (
    Builder,
    batch_norm,
    einsum,
    layer_norm,
    local_response_norm,
    log_softmax,
    rms_norm,
    softmax,
)
from tensorkiln.errors import InvalidGraphError

if TYPE_CHECKING:
    from tests.build.conftest import Compute


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 4), (4, 5)),
        ((4,), (4,)),
        ((3, 4), (4,)),
        ((4,), (4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
        ((6, 1, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (4,)),
        ((1, 4), (4, 1)),
        ((3, 0), (0, 5)),
        ((2, 1), (1, 5)),
    ],
)
def test_a_matrix_product_is_numpys(
    compute: Compute, rng: np.random.Generator, left: tuple[int, ...], right: tuple[int, ...]
):
    a, b = rng.standard_normal(left), rng.standard_normal(right)
    np.testing.assert_allclose(compute(lambda a, b: a @ b, a, b), a @ b, atol=1e-12)


def test_a_matrix_product_of_symbolic_dims_is_numpys(compute: Compute, rng: np.random.Generator):
    a, b = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 4, 5))
    actual = compute(lambda a, b: a @ b, a, b, shapes=[("n", "m", "k"), ("n", "k", 5)])
    np.testing.assert_allclose(actual, a @ b, atol=1e-12)


def test_an_integer_matrix_product_wraps_in_its_dtype(compute: Compute, rng: np.random.Generator):
    a, b = rng.integers(-128, 127, (3, 9), dtype=np.int8), rng.integers(-128, 127, (9, 2), dtype=np.int8)
    np.testing.assert_array_equal(compute(lambda a, b: a @ b, a, b), a @ b)
    wide = compute(lambda a, b: a.cast("int32") @ b.cast("int32"), a, b)
    np.testing.assert_array_equal(wide, a.astype(np.int32) @ b.astype(np.int32))


def test_a_matrix_product_is_an_expanded_product_and_one_sum():
    builder = Builder()
    builder.output(builder.input("float32", (3, 4)) @ builder.input("float32", (4, 5)))
    nodes = [node["node"] for node in builder.document()["nodes"][2:]]
    assert nodes == ["reshape", "permute", "reshape", "expand", "expand", "binop", "reduce_axis"]


@pytest.mark.parametrize(("left", "right"), [((3, 4), (5, 6)), ((), (3,)), ((3, 1), (4, 5)), ((2, 3, 4), (3, 4, 5))])
def test_a_matrix_product_that_does_not_fit_is_refused(left: tuple[int, ...], right: tuple[int, ...]):
    builder = Builder()
    with pytest.raises(InvalidGraphError):
        _ = builder.input("float32", left) @ builder.input("float32", right)


@pytest.mark.parametrize(
    "subscripts", ["ij,jk->ik", "bij,bkj->bik", "ij,ij->", "i,j->ij", "ij,j->ji", "bhqd,bhkd->bhqk"]
)
def test_einsum_is_numpys(compute: Compute, rng: np.random.Generator, subscripts: str):
    first, second = subscripts.split("->")[0].split(",")
    sizes = dict(zip("bhijkqd", (2, 3, 4, 5, 6, 4, 5), strict=True))
    a, b = (rng.standard_normal([sizes[letter] for letter in letters]) for letters in (first, second))
    actual = compute(lambda a, b: einsum(subscripts, a, b), a, b)
    np.testing.assert_allclose(actual, np.einsum(subscripts, a, b), atol=1e-12)


@pytest.mark.parametrize("subscripts", ["ij,jk", "ij->ij", "ii,ij->j", "ij,jk->iz", "ijk,jk->i"])
def test_an_einsum_that_is_not_spelled_out_is_refused(subscripts: str):
    builder = Builder()
    x, y = builder.input("float32", (2, 2)), builder.input("float32", (2, 2))
    with pytest.raises(InvalidGraphError):
        einsum(subscripts, x, y)


def softmax_of(x: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    raised = np.exp(x - x.max(axis, keepdims=True))
    return raised / raised.sum(axis, keepdims=True)


@pytest.mark.parametrize("axis", [0, 1, -1, (1, 2)])
def test_softmax_is_normal_however_large_its_input(
    compute: Compute, rng: np.random.Generator, axis: int | tuple[int, ...]
):
    x = (rng.standard_normal((2, 3, 7)) * 3 + 1000).astype(np.float32)
    expected = softmax_of(x.astype(np.float64), axis)
    for shapes in (None, [("n", 3, "m")]):
        np.testing.assert_allclose(compute(lambda x: softmax(x, axis), x, shapes=shapes), expected, rtol=2e-5)
        logarithm = compute(lambda x: log_softmax(x, axis), x, shapes=shapes)
        np.testing.assert_allclose(logarithm, np.log(expected), rtol=2e-5, atol=1e-6)


def test_layer_norm_has_mean_0_and_variance_1_before_its_weights(compute: Compute, rng: np.random.Generator):
    x = (rng.standard_normal((4, 5, 32)) * 3 + 7).astype(np.float32)
    weight, bias = rng.standard_normal((2, 32)).astype(np.float32)
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    for shapes in (None, [("n", "m", 32), (32,), (32,)], [(4, 5, "d"), ("d",), ("d",)]):
        actual = compute(lambda x, w, b: layer_norm(x, -1, w, b), x, weight, bias, shapes=shapes)
        np.testing.assert_allclose(actual, normal * weight + bias, rtol=1e-4, atol=1e-5)
    both = compute(lambda x: layer_norm(x, (1, 2), eps=1e-3), x)
    centred = wide - wide.mean((1, 2), keepdims=True)
    np.testing.assert_allclose(both, centred / np.sqrt(wide.var((1, 2), keepdims=True) + 1e-3), rtol=1e-4, atol=1e-5)


def test_rms_norm_divides_by_the_root_of_the_mean_square(compute: Compute, rng: np.random.Generator):
    x, weight = rng.standard_normal((3, 8)), rng.standard_normal(8)
    expected = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight
    np.testing.assert_allclose(compute(lambda x, w: rms_norm(x, -1, w), x, weight), expected, rtol=1e-12)


def test_batch_norm_scales_each_channel(compute: Compute, rng: np.random.Generator):
    x = rng.standard_normal((2, 3, 4, 5))
    scale, bias, mean = rng.standard_normal((3, 3))
    variance = rng.random(3)
    column = (slice(None), None, None)
    expected = scale[column] * (x - mean[column]) / np.sqrt(variance[column] + 1e-5) + bias[column]
    actual = compute(batch_norm, x, scale, bias, mean, variance, shapes=[("n", 3, 4, 5), (3,), (3,), (3,), (3,)])
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("beta", [0.5, 0.75, 1.25])
def test_local_response_norm_sums_the_squares_of_neighbouring_channels(
    compute: Compute, rng: np.random.Generator, size: int, beta: float
):
    x = rng.standard_normal((2, 6, 3, 3))
    expected = np.empty_like(x)
    for channel in range(6):
        around = x[:, max(0, channel - (size - 1) // 2) : channel + size // 2 + 1]
        expected[:, channel] = x[:, channel] / (2 + 0.1 / size * (around**2).sum(1)) ** beta
    for shapes in (None, [("n", 6, "h", 3)]):
        actual = compute(lambda x: local_response_norm(x, size, 0.1, beta, 2.0), x, shapes=shapes)
        np.testing.assert_allclose(actual, expected, rtol=1e-12)
