"""Scales of products of dequantised bytes: taken out of the sums, which are then of integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dialect.from_graph import from_graph
from dialect.kiln import new_context
from passes.decompose import decompose
from tensorkiln.build import Builder, Tensor, conv
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tensorkiln.target import Target
from tests import checked
from tests.compiled import runs_here
from tests.filecheck import check_ir
from tests.passes.test_zero_points import bytes_of

Array = np.ndarray[Any, Any]
V4 = Target.parse("cpu:x86-64-v4")
VNNI = V4.model_copy(update={"features": tuple(sorted((*V4.features, "avx512vnni")))})
"""It multiplies bytes if one factor has no sign."""


def activations(b: Builder, shape: Any, scale: Any = (), zero: bool = True, dtype: str = "uint8") -> Tensor:
    """Dequantised bytes."""
    x = b.input(dtype, shape).cast("int32")
    if zero:
        x = x - b.input(dtype, ()).cast("int32")
    return x.cast("float32") * b.input("float32", scale)


def weights(b: Builder, shape: Any, scale: Any = ()) -> Tensor:
    """Dequantised int8, a parameter."""
    return b.parameter("int8", shape).cast("float32") * b.parameter("float32", scale)


def without_scales(graph: Graph) -> str:
    return str(decompose(from_graph(graph, new_context()), multiplies_bytes=True))


def test_integers_are_summed_before_they_are_scaled() -> None:
    b = Builder()
    b.output(activations(b, (4, 40), zero=False) @ weights(b, (40, 8), (1, 8)))
    check_ir(
        without_scales(b.graph()),
        """
        // CHECK: %[[SUM:.*]] = "kiln.reduce_axis"(%{{.*}}) {{.*}}reduce_op_kind = "sum"{{.*}} -> tensor<4x8xi32>
        // CHECK: %[[FLOAT:.*]] = "kiln.cast"(%[[SUM]]) {{.*}} -> tensor<4x8xf32>
        // CHECK: %[[ONE:.*]] = "kiln.binop"(%[[FLOAT]], %{{.*}}) {{.*}}op = "mul"
        // CHECK: "kiln.binop"(%[[ONE]], %{{.*}}) {{.*}}op = "mul"
        // CHECK-NOT: "kiln.reduce_axis"
        """,
    )


def _kept(case: str) -> Graph:
    b = Builder()
    match case:
        case "weights of the call":
            given = b.input("int8", (40, 8)).cast("float32") * b.input("float32", ())
            b.output(activations(b, (4, 40)) @ given)
        case "a scale for each term":
            b.output(activations(b, (4, 40)) @ weights(b, (40, 8), (40, 1)))
        case "a scale for each block of terms":
            scale = b.parameter("float32", (4, 1, 8)).expand((4, 10, 8)).reshape((40, 8))
            b.output(activations(b, (4, 40)) @ (b.parameter("int8", (40, 8)).cast("float32") * scale))
        case "a padded scale":
            b.output(conv(activations(b, (1, 3, 5, 5), (1, 3, 1, 1)), weights(b, (8, 3, 3, 3)), padding=1))
        case "sums beyond 32 bits":
            b.output(activations(b, (2, 66_000)) @ weights(b, (66_000, 2)))
        case "one row":
            b.output(activations(b, (1, 40)) @ weights(b, (40, 8)))
        case _:
            b.output(activations(b, (4, 40)) @ (weights(b, (40, 8)) + 1.0))
    return b.graph()


@pytest.mark.parametrize(
    "case",
    [
        "weights of the call",
        "a scale for each term",
        "a scale for each block of terms",
        "a padded scale",
        "sums beyond 32 bits",
        "one row",
        "other weights",
    ],
)
def test_scales_stay_where_they_differ_or_nothing_is_won(case: str) -> None:
    graph = _kept(case)
    assert without_scales(graph) == str(decompose(from_graph(graph, new_context())))


def matrix(b: Builder) -> Tensor:
    return activations(b, (20, 150)) @ weights(b, (150, 40), (1, 40))


def rows_of_their_own_scale(b: Builder) -> Tensor:
    return activations(b, (2, 9, 70), (2, 9, 1)) @ weights(b, (70, 33), ())


def symbolic(b: Builder) -> Tensor:
    return activations(b, (b.symbol("n", 1, 50), 64)) @ weights(b, (64, 24), (1, 24)) + 1.0


def image(b: Builder) -> Tensor:
    return conv(activations(b, (2, 5, 13, 17)), weights(b, (24, 5, 3, 3), (24, 1, 1, 1)), padding=1, stride=2)


def groups(b: Builder) -> Tensor:
    return conv(activations(b, (1, 8, 9, 9)), weights(b, (12, 4, 3, 3), (12, 1, 1, 1)), groups=2)


def depthwise(b: Builder) -> Tensor:
    x = activations(b, (1, 12, 11, 14), zero=False)
    return conv(x, weights(b, (12, 1, 3, 3), (12, 1, 1, 1)), padding=1, groups=12)


def signed(b: Builder) -> Tensor:
    x = activations(b, (1, 8, 9, 9), dtype="int8")
    return conv(x, weights(b, (12, 8, 3, 3), (12, 1, 1, 1)), padding=1)


def symmetric(b: Builder) -> Tensor:
    x = activations(b, (1, 8, 9, 9), zero=False, dtype="int8")
    return conv(x, weights(b, (12, 8, 3, 3), (12, 1, 1, 1)), padding=1)


def layers(b: Builder) -> Tensor:
    """A convolution, quantised again, a second one, and the first added."""
    first = conv(activations(b, (1, 16, 10, 10)), weights(b, (16, 16, 3, 3), (16, 1, 1, 1)), padding=1)
    again = first.clip(0.0, 250.0).cast("uint8").cast("float32") * b.input("float32", ())
    return conv(again, weights(b, (16, 16, 1, 1), (16, 1, 1, 1))) + first


WRITTEN = (matrix, rows_of_their_own_scale, symbolic, image, groups, depthwise, signed, symmetric, layers)


@pytest.mark.parametrize("write", WRITTEN)
@pytest.mark.parametrize("target", ["cpu:x86-64-v3", VNNI, "cpu:native"])
def test_sums_of_integers_are_near_the_reference(write: Any, target: Any) -> None:
    if not runs_here(target):
        pytest.skip(f"{target} does not run here")
    b = Builder()
    b.output(write(b))
    graph = b.graph()
    symbols = {"n": 37} if graph.symbols else {}
    arrays: list[Array] = []
    for place, var in enumerate(graph.input_vars):
        kind = graph.types[var]
        shape = tuple(extent if isinstance(extent, int) else 37 for extent in kind.shape)
        is_byte = kind.dtype.is_integer
        scales = np.random.default_rng(place).uniform(0.001, 0.01, shape).astype(np.float32)
        arrays.append(bytes_of(shape, str(kind.dtype), place) if is_byte else scales)
    (found,) = checked.ready(graph, target)(*arrays, **symbols)
    (wanted,) = evaluate(graph, *arrays, **symbols)
    np.testing.assert_allclose(found, wanted, 1e-5, 2e-5 * float(np.abs(wanted).max()))
