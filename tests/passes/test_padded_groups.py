"""A normalisation of groups and an activation in front of padding: indices as plain as without it, and vectors."""

from __future__ import annotations

import numpy as np
import pytest

from passes.loops.index_space import IndexSpace
from tensorkiln import expr
from tensorkiln.build import Builder, conv2d, pad, reshape, sigmoid, sqrt
from tensorkiln.expr import Dim, symbol
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.bounds import accesses
from tests.compiled import compiled, runs_here
from tests.filecheck import check_ir
from tests.passes.modules import after, output, realised

V3, V4 = "cpu:x86-64-v3", "cpu:x86-64-v4"
TARGETS = [target for target in ("cpu:x86-64-v2", V3, V4) if runs_here(target)]
GROUPS = 4
SHAPES: dict[str, tuple[Dim | str, Dim | str]] = {
    "static": (7, 21),
    "of any height": ("n", 21),
    "of any width": (5, "n"),
}


def normalised(height: Dim | str, width: Dim | str, *, is_convolved: bool) -> Graph:
    """Groups of two of eight channels are normalised, then `x * sigmoid(x)`, padded by one pixel."""
    b = Builder("groups")
    if "n" in (height, width):
        b.symbol("n", 1, 40)
    x = b.input("float32", (1, 2 * GROUPS, height, width))
    scale, bias = b.input("float32", (2 * GROUPS, 1, 1)), b.input("float32", (2 * GROUPS, 1, 1))
    points = expr.mul(2, *x.shape[2:])
    groups = reshape(x, (1, GROUPS, points))
    groups = groups - groups.mean(2, keepdims=True)
    groups = groups / sqrt((groups * groups).mean(2, keepdims=True) + 1e-5)
    y = reshape(groups, x.shape) * scale + bias
    y = y * sigmoid(y)
    if is_convolved:
        return output(b, conv2d(y, b.input("float32", (3, 2 * GROUPS, 3, 3)), padding=1))
    return output(b, pad(y, [(0, 0), (0, 0), (1, 1), (1, 1)]))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("is_convolved", [False, True], ids=["padded", "convolved"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_padded_normalisation_gives_what_the_reference_gives(name: str, is_convolved: bool, target: str) -> None:
    graph = normalised(*SHAPES[name], is_convolved=is_convolved)
    made = compiled(graph, target)
    rng = np.random.default_rng(2)
    for n in (1, 16, 37) if graph.symbols else (0,):
        symbols = {"n": n} if n else {}
        shapes = [[expr.evaluate(dim, symbols) for dim in graph.types[var].shape] for var in graph.input_vars]
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        (found,) = checked.run(made, *arrays, **symbols)
        np.testing.assert_allclose(found, evaluate(graph, *arrays, **symbols)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", [V3, V4])
@pytest.mark.parametrize("name", SHAPES)
def test_accesses_of_a_padded_normalisation_are_proven(name: str, target: str) -> None:
    module = realised(normalised(*SHAPES[name], is_convolved=False), target)
    assert [access for access in accesses(module) if not access.is_proven] == []


def test_an_activation_in_front_of_padding_is_computed_on_vectors() -> None:
    kernels = str(after("realise", normalised(7, 21, is_convolved=False), V4)).split("func.func @kernel_")
    (padded,) = (kernel for kernel in kernels if "vector.maskedload" in kernel)
    check_ir(
        padded,
        """
        // CHECK-NOT: floordiv
        // CHECK: vector.maskedload {{.*}} vector<16xf32>
        // CHECK: arith.divf {{.*}} vector<16xf32>
        // CHECK: vector.store {{.*}} vector<16xf32>
        """,
    )


def test_a_reshape_in_padding_divides_as_if_the_element_were_there() -> None:
    space = IndexSpace({})
    channel, row, column = space.add("c", 8), space.add("i", 18), space.add("j", 22)
    group, place = space.reshape((channel, expr.sub(row, 1), expr.sub(column, 1)), (8, 16, 20), (GROUPS, 2 * 16 * 20))
    assert group == expr.floordiv(symbol("c"), 2)
    for c, i, j in ((0, 1, 1), (5, 16, 20), (7, 3, 9)):
        assert expr.evaluate(place, {"c": c, "i": i, "j": j}) == c % 2 * 320 + (i - 1) * 20 + j - 1
    assert set(space.extents) == {"c", "i", "j"}
