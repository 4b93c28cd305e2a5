"""Index arithmetic against NumPy and against brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from passes.loops.index_space import IndexSpace, linear_form, rejoin
from tensorkiln import expr
from tensorkiln.expr import Dim, evaluate, symbol

INDEX, J, K, N = (symbol(name) for name in "ijkn")
SPAN = st.integers(1, 6)


def settings(extents: Mapping[str, int]) -> Iterator[dict[str, int]]:
    for place in itertools.product(*(range(extent) for extent in extents.values())):
        yield dict(zip(extents, place, strict=True))


@st.composite
def factorisations(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two shapes of one array of up to 72 elements, with dimensions of size 1 here and there."""
    size = draw(st.sampled_from([0, 1, 2, 4, 6, 12, 16, 24, 30, 36, 60, 64, 72]))

    def shape() -> list[int]:
        if size == 0:
            dims = [0, *draw(st.lists(st.integers(0, 4), max_size=3))]
            return draw(st.permutations(dims))
        dims: list[int] = []
        left = size
        while left > 1:
            factor = draw(st.sampled_from([d for d in range(2, left + 1) if left % d == 0]))
            dims.append(factor)
            left //= factor
        dims += [1] * draw(st.integers(0, 2))
        return draw(st.permutations(dims))

    return shape(), shape()


def check_reshape(space: IndexSpace, shape: Sequence[Dim], source: Sequence[Dim], symbols: Mapping[str, int]) -> None:
    """That `space.reshape` is NumPy's for these values of the symbols."""
    index = tuple(space.add(f"r{axis}", extent) for axis, extent in enumerate(shape))
    found = space.reshape(index, shape, source)
    have = [evaluate(dim, symbols) for dim in source]
    want = [evaluate(dim, symbols) for dim in shape]
    assert len(found) == len(source)
    positions = np.arange(math.prod(have)).reshape(have).reshape(want)
    for place in np.ndindex(*want):
        env = {**symbols, **{f"r{axis}": position for axis, position in enumerate(place)}}
        at = tuple(evaluate(dim, env) for dim in found)
        assert all(0 <= position < extent for position, extent in zip(at, have, strict=True))
        assert positions[place] == np.ravel_multi_index(at, have) if have else positions[place] == 0


@given(factorisations())
def test_a_reshape_reads_where_numpy_does(shapes: tuple[list[int], list[int]]) -> None:
    source, shape = shapes
    check_reshape(IndexSpace({}), shape, source, {})


SYMBOLIC: list[tuple[list[Dim], list[Dim]]] = [
    ([N, 4], [4 * N]),
    ([4 * N], [N, 4]),
    ([4 * N], [4, N]),
    ([N, 4], [4, N]),
    ([N, 6, 5], [2, 3, N, 5]),
    ([N, 6], [N, 3, 2]),
    ([N, 1, 4], [N, 2, 2, 1]),
    ([2, N, 3], [N, 6]),
    ([N * N], [N, N]),
    ([N, N + 1], [N * N + N]),
    ([N + 1, 2], [2, N + 1]),
    ([N * 2, N], [N, 2, N]),
    ([N, 3, N], [3, N * N]),
    ([1, N], [N, 1, 1]),
]


@pytest.mark.parametrize(("source", "shape"), SYMBOLIC)
@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_a_symbolic_reshape_reads_where_numpy_does(source: list[Dim], shape: list[Dim], size: int) -> None:
    check_reshape(IndexSpace({"n": (0, 5)}), shape, source, {"n": size})


def test_a_reshape_that_keeps_dimensions_costs_no_division() -> None:
    space = IndexSpace({"n": (1, 64)})
    i, j, k = space.add("i", N), space.add("j", 6), space.add("k", 5)
    assert space.reshape((i, j, k), (N, 6, 5), (N, 1, 6, 5)) == (i, 0, j, k)
    assert space.reshape((i, j, k), (N, 6, 5), (N, 30)) == (i, 5 * J + K)
    flat = space.add("f", 30)
    assert space.reshape((i, flat), (N, 30), (N, 6, 5)) == (i, expr.floordiv(flat, 5), expr.floormod(flat, 5))


def test_merging_what_was_split_is_the_index_itself() -> None:
    space = IndexSpace({"n": (1, 64)})
    flat = space.add("f", N * 12)
    split = space.unflatten(flat, (N, 3, 4))
    assert space.flatten(split, (N, 3, 4)) == flat


@pytest.mark.parametrize("shape", [(2, N + 1, N - 1), (N, N - 1, N + 1), (K, N + 1, N - 1), (N + 1, N - 1, K, N - 1)])
def test_merging_what_was_split_by_factors_whose_product_has_fewer_terms_is_the_index_itself(
    shape: tuple[Dim, ...],
) -> None:
    space = IndexSpace({"n": (2, 64), "k": (1, 8)})
    flat = space.add("f", expr.product(shape))
    assert space.flatten(space.unflatten(flat, shape), shape) == flat


def test_splitting_what_was_merged_is_the_index_itself() -> None:
    space = IndexSpace({"n": (1, 64)})
    index = (space.add("i", N), space.add("j", 3), space.add("k", N))
    assert space.unflatten(space.flatten(index, (N, 3, N)), (N, 3, N)) == index


@given(st.lists(st.integers(-6, 12), min_size=3, max_size=3), SPAN, SPAN, st.integers(-4, 20), st.integers(1, 12))
def test_division_splits_an_index_rightly(
    slopes: list[int], first: int, second: int, offset: int, divisor: int
) -> None:
    space = IndexSpace({})
    i, j = space.add("i", first), space.add("j", second)
    index = expr.add(expr.mul(slopes[0], i), expr.mul(slopes[1], j), offset)
    quotient, rest = space.divide(index, divisor)
    for env in settings({"i": first, "j": second}):
        value = evaluate(index, env)
        assert (evaluate(quotient, env), evaluate(rest, env)) == divmod(value, divisor)


@given(st.integers(0, 4), st.integers(0, 4), st.integers(1, 5), st.integers(1, 3))
def test_division_by_a_symbol_splits_an_index_rightly(a: int, b: int, size: int, scale: int) -> None:
    space = IndexSpace({"n": (1, 5)})
    i, j = space.add("i", 4), space.add("j", N)
    index = expr.add(expr.mul(a, N, i), expr.mul(b, i), expr.mul(scale, j))
    divisor = expr.mul(scale, N)
    quotient, rest = space.divide(index, divisor)
    for env in settings({"i": 4, "j": size}):
        env["n"] = size
        expected = divmod(evaluate(index, env), scale * size)
        assert (evaluate(quotient, env), evaluate(rest, env)) == expected


def test_a_division_is_split_wherever_the_bounds_allow() -> None:
    space = IndexSpace({"n": (1, 64)})
    i, j, row = space.add("i", 7), space.add("j", 8), space.add("row", N)
    assert space.divide(8 * i + j, 8) == (i, j)
    assert space.divide(N * i + row, N) == (i, row)
    # 8 divides both: the rest of the division is of i alone.
    assert space.divide(8 * i + j, 16) == (expr.floordiv(i, 2), 8 * expr.floormod(i, 2) + j)
    assert space.divide(i, 7) == (0, i)
    assert space.divide(i, 1) == (i, 0)
    assert space.divide(i, 0) == (0, 0)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.integers(1, 3), st.integers(1, 4))
def test_a_position_in_an_image_whose_sizes_are_sums_is_split_rightly(
    stride: int, taps: int, around: int, dilation: int, size: int
) -> None:
    """The window of a padded image: as `grouped_windows` addresses it, by rows of n + 2 * around columns."""
    reach = (taps - 1) * dilation + 1
    assume(size + 2 * around >= reach)
    space = IndexSpace({"n": (size, 9)})
    columns = expr.add(N, 2 * around)
    counts = expr.add(expr.floordiv(expr.sub(columns, reach), stride), 1)
    i, j, k, c = space.add("i", counts), space.add("j", counts), space.add("k", taps), space.add("c", 4)
    index = (c, expr.add(stride * j, dilation * k), expr.add(stride * i, dilation * k))
    assert space.unflatten(space.flatten(index, (4, columns, columns)), (4, columns, columns)) == index
    assert all(space.is_within(position, columns) for position in index[1:])


@given(st.lists(st.integers(-3, 3), min_size=4, max_size=4), st.integers(-3, 3), st.integers(1, 5))
def test_division_by_a_sum_splits_an_index_rightly(slopes: list[int], more: int, size: int) -> None:
    space = IndexSpace({"n": (1, 5)})
    i, j = space.add("i", 4), space.add("j", N)
    index = expr.add(*(expr.mul(a, b) for a, b in zip(slopes, (N * i, i, j, N * N), strict=True)), 200)
    divisor = expr.add(expr.mul(2, N), 3 + more)
    quotient, rest = space.divide(index, divisor)
    for env in settings({"i": 4, "j": size}):
        env["n"] = size
        if evaluate(divisor, env) > 0 and evaluate(index, env) >= 0:
            assert (evaluate(quotient, env), evaluate(rest, env)) == divmod(
                evaluate(index, env), evaluate(divisor, env)
            )


@given(st.lists(st.integers(-4, 4), min_size=5, max_size=5), st.integers(2, 3))
def test_a_sum_of_floor_divisions_that_is_proven_is_nonnegative(slopes: list[int], divisor: int) -> None:
    space = IndexSpace({"n": (0, 12)})
    half = expr.floordiv(expr.add(N, -1), divisor)
    index = space.add("i", expr.add(half, 1))
    parts = (N, half, expr.floordiv(half, 2), index, 1)
    found = expr.add(*(expr.mul(slope, part) for slope, part in zip(slopes, parts, strict=True)))
    values = [evaluate(found, {"n": n, "i": i}) for n in range(13) for i in range(max((n - 1) // divisor + 1, 0))]
    assert not space.is_nonnegative(found) or min(values, default=0) >= 0


def test_floor_divisions_cancel_what_they_divide() -> None:
    space = IndexSpace({"n": (1, 64)})
    half = expr.floordiv(N - 1, 2)
    i = space.add("i", half + 1)
    assert space.is_nonnegative(N - 1 - 2 * half)
    assert space.is_nonnegative(N - 1 - 2 * i)
    assert not space.is_nonnegative(N - 2 - 2 * i)
    assert space.is_nonnegative(N - 1 - 4 * expr.floordiv(half, 2))
    assert not space.is_nonnegative(half * half - N)


def test_a_division_that_may_carry_is_kept() -> None:
    space = IndexSpace({})
    i, j = space.add("i", 7), space.add("j", 9)
    quotient, rest = space.divide(8 * i + j, 8)
    assert quotient == i + expr.floordiv(j, 8)
    assert rest == expr.floormod(j, 8)


@given(st.lists(st.integers(-8, 8), min_size=3, max_size=3), st.integers(1, 6))
def test_a_split_multiple_is_an_identity(slopes: list[int], divisor: int) -> None:
    index = expr.add(expr.mul(slopes[0], INDEX), expr.mul(slopes[1], expr.floordiv(J, divisor)), slopes[2])
    quotient, rest = expr.split_multiple(index, divisor)
    assert expr.add(expr.mul(quotient, divisor), rest) == index
    assert expr.split_multiple(expr.mul(index, divisor), divisor) == (index, 0)


def test_divisions_that_meet_again_vanish() -> None:
    assert rejoin(4 * expr.floordiv(INDEX, 4) + expr.floormod(INDEX, 4)) == INDEX
    assert rejoin(N * expr.floordiv(INDEX, N) * 3 + 3 * expr.floormod(INDEX, N) + J) == 3 * INDEX + J
    inner = expr.floordiv(INDEX, 3)
    assert rejoin(6 * expr.floordiv(inner, 2) + 3 * expr.floormod(inner, 2) + expr.floormod(INDEX, 3)) == INDEX


@pytest.mark.parametrize(
    "index",
    [
        5 * expr.floordiv(INDEX, 4) + expr.floormod(INDEX, 4),
        4 * expr.floordiv(J, 4) + expr.floormod(INDEX, 4),
        expr.floormod(INDEX, 4),
        expr.mul(*[expr.floormod(INDEX, 4)] * 2) + 4 * expr.floordiv(INDEX, 4),
    ],
)
def test_rejoining_never_changes_a_value(index: Dim) -> None:
    joined = rejoin(index)
    for env in settings({"i": 20, "j": 20}):
        assert evaluate(joined, env) == evaluate(index, env)


@given(st.lists(st.integers(-5, 5), min_size=4, max_size=4), st.sampled_from([("i",), ("j", "i"), ("i", "j", "k")]))
def test_a_linear_form_is_the_index(slopes: list[int], names: tuple[str, ...]) -> None:
    index = expr.add(expr.mul(slopes[0], INDEX), expr.mul(slopes[1], N, J), slopes[2], expr.mul(slopes[3], N, INDEX))
    form = linear_form(index, names)
    assert form is not None
    offset, strides = form
    assert (
        expr.add(offset, *(expr.mul(stride, symbol(name)) for stride, name in zip(strides, names, strict=True)))
        == index
    )
    assert expr.free_symbols(offset).isdisjoint(names)
    assert all(expr.free_symbols(stride).isdisjoint(names) for stride in strides)


@pytest.mark.parametrize("index", [expr.floordiv(INDEX, 2), INDEX * J, INDEX * INDEX, expr.maximum(INDEX, 3) * N])
def test_a_nonlinear_dim_has_no_linear_form(index: Dim) -> None:
    assert linear_form(index, ("i", "j")) is None


def test_a_linear_form_may_have_any_coefficients() -> None:
    assert linear_form(INDEX * J + expr.floordiv(K, 2), ("i",)) == (expr.floordiv(K, 2), (J,))


def test_a_space_knows_what_holds_of_its_names() -> None:
    space = IndexSpace({"n": (2, 9)})
    i = space.add("i", N)
    assert space.is_within(i, N)
    assert not space.is_within(i + 1, N)
    assert space.is_positive(N - 1)
    assert not space.is_positive(N - 2)
    assert space.largest(i * 3) == 24
    space.bound("v", -4, 6)
    assert space.largest(symbol("v") + i) == 14
    assert not space.is_nonnegative(symbol("v"))


@given(st.lists(SPAN, min_size=1, max_size=4))
def test_flatten_and_unflatten_are_inverse(shape: list[int]) -> None:
    assume(math.prod(shape) <= 200)
    space = IndexSpace({})
    flat = space.add("f", math.prod(shape))
    split = space.unflatten(flat, shape)
    for value in range(math.prod(shape)):
        found = tuple(evaluate(position, {"f": value}) for position in split)
        assert found == tuple(int(position) for position in np.unravel_index(value, shape))
        assert evaluate(space.flatten(split, shape), {"f": value}) == value


def test_a_truncating_division_of_what_is_not_negative_rounds_down() -> None:
    space, n = IndexSpace({"n": (1, 9), "v": (-3, 9)}), symbol("n")
    for truncating, flooring in ((expr.idiv, expr.floordiv), (expr.mod, expr.floormod)):
        one_less = expr.sub(n, 1)
        assert space.floored(expr.add(truncating(one_less, 2), 1)) == expr.add(flooring(one_less, 2), 1)
        assert space.floored(expr.maximum(truncating(n, 3), 2)) == expr.maximum(flooring(n, 3), 2)
        signed = truncating(symbol("v"), 2)
        assert space.floored(signed) == signed
