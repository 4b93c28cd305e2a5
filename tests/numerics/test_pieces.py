"""What is put side by side is computed in pieces, each without asking where an element is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from passes.compile import Compilation
from tensorkiln.build import Builder, Tensor, cat
from tests import checked
from tests.compiled import proven

Array = np.ndarray[Any, Any]
PARTS: tuple[tuple[Callable[[Tensor], Tensor], Callable[[Array], Array]], ...] = (
    (lambda x: x * 3.0, lambda x: x * 3),
    (lambda x: -x, lambda x: -x),
    (lambda x: x + 1.0, lambda x: x + 1),
    (lambda x: x * x, lambda x: x * x),
)


def nests(compilation: Compilation) -> int:
    """The loop nests of a map: each is left to linalg, or stores vectors at one place."""
    text = compilation.dumps["realise"]
    return text.count("linalg.generic") + text.count("vector.store ")


@pytest.mark.parametrize("target", ["cpu:x86-64-v2", "cpu:native"])
@pytest.mark.parametrize(
    ("shape", "axis", "extents", "count"),
    [
        ((5, 0), 1, (33, 31), 2),
        ((5, 0), 1, (1, 70, 2), 3),
        ((5, 0), 1, (16, 16, 16, 16), 4),
        ((0, 7, 9), 0, (3, 8), 2),
        ((3, 0, 9), 1, (6, 5), 2),
        (("n", 0), 1, (20, 13), 2),
        ((0, "n"), 0, (4, 3), 1),
        ((5, 0), 1, (3,) * 13, 13),
        (("n", 0), 1, (3,) * 13, 13),
    ],
)
def test_parts_side_by_side(
    shape: tuple[int | str, ...], axis: int, extents: tuple[int, ...], count: int, target: str
) -> None:
    b = Builder("pieces")
    dims = [b.symbol(dim, 1, 64) if isinstance(dim, str) else dim for dim in shape]
    parts = [b.input("float32", (*dims[:axis], extent, *dims[axis + 1 :])) for extent in extents]
    b.output(cat([PARTS[number % 4][0](part) for number, part in enumerate(parts)], axis) * 2.0)
    compilation = proven(b.graph(), target, texts=["realise"])
    rng = np.random.default_rng(3)
    sizes = [19 if isinstance(dim, str) else dim for dim in shape]
    arrays = [rng.standard_normal((*sizes[:axis], each, *sizes[axis + 1 :])).astype(np.float32) for each in extents]
    symbols = {"n": 19} if "n" in shape else {}
    (result,) = checked.run(compilation, *arrays, threads=2, **symbols)
    wanted = [PARTS[number % 4][1](array) for number, array in enumerate(arrays)]
    np.testing.assert_array_equal(result, np.concatenate(wanted, axis) * np.float32(2))
    assert nests(compilation) == count


def test_halves_that_are_turned_are_two_loops() -> None:
    """As rotary embeddings have them."""
    b = Builder("rotary")
    x, turn = b.input("float32", (4, 6, 32)), b.input("float32", (6, 32))
    b.output(cat([-x[..., 16:], x[..., :16]], -1) * turn + x)
    compilation = proven(b.graph(), texts=["realise"])
    rng = np.random.default_rng(4)
    values, turns = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 6, 32), (6, 32)))
    (result,) = checked.run(compilation, values, turns, threads=1)
    turned = np.concatenate([-values[..., 16:], values[..., :16]], -1)
    np.testing.assert_allclose(result, turned * turns + values, rtol=1e-6, atol=1e-6)
    assert nests(compilation) == 2
