"""Maps that read across the loop along which they write: squares are transposed in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passes.codegen.object_code import assembly
from tensorkiln.build import Builder, Tensor, flip, pad, permute, transpose
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled, program, target
from tests.filecheck import check_ir
from tests.passes.modules import output

V2, V3, V4 = "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4"
Array = np.ndarray[Any, Any]


def moved(dtype: str, shape: tuple[Any, ...], order: tuple[int, ...]) -> Graph:
    """An input with its axes in another order; a string is the name of a symbolic extent."""
    b = Builder()
    extents = tuple(b.symbol(each, 1, 4096) if isinstance(each, str) else each for each in shape)
    return output(b, permute(b.input(dtype, extents), *order))


def fused(make: Callable[..., Tensor], *shapes: tuple[int, ...], dtype: str = "float32") -> Graph:
    b = Builder()
    return output(b, make(*(b.input(dtype, shape) for shape in shapes)))


def strategies(graph: Graph, name: str = V3) -> list[str]:
    """The strategy of each kernel."""
    made = compiled(graph, name)
    return [offered[picked].strategy for offered, picked in made.offered]


def realised(graph: Graph, name: str = V3) -> str:
    return compiled(graph, name, texts=("realise",)).dumps["realise"]


def whole(shape: tuple[int, ...], dtype: str = "float32") -> Array:
    """Numbers that float32 holds exactly, all different in a small array."""
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize(("name", "lanes"), [(V3, 8), (V4, 16)])
def test_a_square_is_loaded_shuffled_and_stored_by_vectors(name: str, lanes: int) -> None:
    check_ir(
        realised(moved("float32", (128, 192), (1, 0)), name),
        f"""
        // CHECK: func.func @kernel_0_body
        // CHECK-COUNT-{lanes}: vector.load {{{{.*}}}}vector<{lanes}xf32>
        // CHECK-COUNT-{lanes * (lanes.bit_length() - 1)}: vector.shuffle
        // CHECK-COUNT-{lanes}: vector.store
        """,
    )


def test_whole_tiles_have_no_masks_and_others_do() -> None:
    assert "vector.masked" not in realised(moved("float32", (128, 192), (1, 0)))
    assert "vector.maskedstore" in realised(moved("float32", (128, 200), (1, 0)))


@pytest.mark.parametrize(
    ("graph", "taken"),
    [
        (moved("float32", (100, 70), (1, 0)), "transpose"),
        (moved("int64", (100, 70), (1, 0)), "transpose"),
        (moved("float32", (4, 40, 50, 64), (0, 3, 1, 2)), "transpose"),
        (moved("float32", ("n", 40, 64), (2, 0, 1)), "transpose"),
        (moved("float32", (4, 500, 16), (0, 2, 1)), "transpose"),
        (moved("float32", (4, 8, 500), (0, 2, 1)), "loops"),
        (moved("float32", (4, 500, 3), (0, 2, 1)), "loops"),
        (moved("float16", (100, 70), (1, 0)), "loops"),
        (moved("int8", (100, 70), (1, 0)), "loops"),
        (moved("bool", (100, 70), (1, 0)), "loops"),
        (moved("float32", (20, 30), (1, 0)), "loops"),
        (moved("float32", (40, 50, 64), (1, 0, 2)), "loops"),
        (fused(lambda x: transpose(x).exp(), (100, 70)), "transpose"),
        (fused(lambda x: transpose(x).log(), (100, 70)), "loops"),
        (fused(lambda x: transpose(flip(x, 0)), (100, 70)), "loops"),
        (fused(lambda x: flip(transpose(x), 0), (100, 70)), "loops"),
        (fused(lambda x: pad(transpose(x), [(1, 1), (0, 0)]), (100, 70)), "loops"),
    ],
)
def test_transpose_takes_wide_elements_and_plain_operations(graph: Graph, taken: str) -> None:
    assert strategies(graph) == [taken]


def test_a_target_without_masked_vectors_transposes_in_loops() -> None:
    assert strategies(moved("float32", (100, 70), (1, 0)), V2) == ["loops"]


ORDERS = ((1, 0), (0, 2, 1), (2, 1, 0), (1, 2, 0), (0, 3, 1, 2), (0, 2, 3, 1), (3, 1, 2, 0))


@settings(max_examples=10)
@given(
    st.sampled_from(("float32", "float64", "int32", "uint32", "int64", "uint64")),
    st.sampled_from(ORDERS),
    st.lists(st.integers(1, 140), min_size=4, max_size=4),
    st.booleans(),
)
def test_a_transposition_is_numpys(dtype: str, order: tuple[int, ...], drawn: list[int], symbolic: bool) -> None:
    shape = tuple(each if axis < 2 else 1 + each % 12 for axis, each in enumerate(drawn[: len(order)]))
    names = ("n", "m") if symbolic else ()
    graph, x = moved(dtype, (*names, *shape[len(names) :]), order), whole(shape, dtype)
    symbols = dict(zip(names, shape, strict=False))
    (made,) = checked.run_graph(graph, x, **symbols)
    np.testing.assert_array_equal(made, x.transpose(order))


FUSED: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...]]] = {
    "with another operand": (lambda x, y: transpose(x) * 2 + y, ((100, 70), (70, 100))),
    "of two": (lambda x, y: transpose(x) - transpose(y), ((100, 70), (100, 70))),
    "with a row": (lambda x, y: transpose(x) + y, ((100, 70), (100,))),
    "with a column": (lambda x, y: transpose(x + y), ((100, 70), (70,))),
    "of a square": (lambda x: x + transpose(x), ((72, 72),)),
    "clamped": (lambda x: transpose(x).clip(-3, 1000), ((65, 129),)),
    "turned": (lambda x, y: transpose(x) + flip(transpose(y), 1), ((100, 70), (100, 70))),
    "of blocks of channels": (lambda x, y: permute(x, 0, 2, 1) + y, ((3, 50, 16), (1, 16, 1))),
    "of a batch": (lambda x, y: permute(x, 0, 2, 1) + y, ((3, 40, 50), (3, 50, 40))),
}


@pytest.mark.parametrize("kind", FUSED)
def test_a_transposition_computes_what_is_fused_with_it(kind: str) -> None:
    make, shapes = FUSED[kind]
    graph = fused(make, *shapes)
    assert strategies(graph) == ["transpose"]
    arrays = [whole(shape) - 500 for shape in shapes]
    made, expected = checked.run_graph(graph, *arrays), evaluate(graph, *arrays)
    np.testing.assert_array_equal(made[0], expected[0])


def test_two_results_of_one_transposition() -> None:
    b = Builder()
    x, y = b.input("float32", (70, 100)), b.input("float32", (100, 70))
    b.output(transpose(x) + y)
    b.output(transpose(x) * y)
    arrays = whole((70, 100)), whole((100, 70)) % 7
    made, expected = checked.run_graph(b.graph(), *arrays), evaluate(b.graph(), *arrays)
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_array_equal(one, other)


LARGE = (2048, 2112)
"""Elements of more bytes than a cache holds."""


def test_a_large_result_is_stored_past_the_cache() -> None:
    graph = moved("float32", LARGE, (1, 0))
    assert "nontemporal = true" in realised(graph)
    text = assembly(compiled(graph, V3, texts=("translate",)).dumps["translate"], target(V3))
    assert "vmovntps" in text
    assert "sfence" in text
    assert "nontemporal" not in realised(moved("float32", (1024, 1056), (1, 0)))


@pytest.mark.parametrize("shape", [(2047, 2112), ("n", 40)])
def test_a_result_of_other_rows_is_stored_in_the_cache(shape: tuple[Any, ...]) -> None:
    assert "nontemporal" not in realised(moved("float32", shape, (1, 0)))


@pytest.mark.parametrize("shape", [LARGE, (2047, 2112), (2112, 2047), (30, 50)])
def test_a_symbolic_result_is_stored_past_the_cache_if_that_pays(shape: tuple[int, int]) -> None:
    graph = moved("float32", ("n", "m"), (1, 0))
    text = realised(graph)
    # The elements of a row are whole vectors, the result begins at one, and it has 16 MiB.
    assert "nontemporal = true" in text
    assert "arith.cmpi uge" in text
    (made,) = program(compiled(graph, "cpu:native"))(whole(shape), n=shape[0], m=shape[1])
    np.testing.assert_array_equal(made, whole(shape).T)


@pytest.mark.parametrize("shift", [0, 1, 8])
def test_a_large_result_may_begin_anywhere(shift: int) -> None:
    run, x = program(compiled(moved("float32", LARGE, (1, 0)))), whole(LARGE)
    memory = np.full(x.size + 32, -1, np.float32)
    first = -memory.ctypes.data % 64 // 4 + shift
    run.run_into([memory[first : first + x.size].reshape(LARGE[::-1])], x)
    np.testing.assert_array_equal(memory[first : first + x.size].reshape(LARGE[::-1]), x.T)
    assert (memory[:first] == -1).all()
    assert (memory[first + x.size :] == -1).all()
