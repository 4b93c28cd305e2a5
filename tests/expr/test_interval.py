"""What is claimed of a dim from the bounds of its symbols, against every value that it takes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorkiln import expr
from tensorkiln.expr import Dim, ExprError, bounds, is_nonnegative, symbol
from tests.expr.dims import EVERY_SETTING, RANGES, Sample, samples

N, INDEX, J = symbol("n"), symbol("i"), symbol("j")


@given(samples())
def test_bounds_hold_every_value(sample: Sample) -> None:
    low, high = bounds(sample.dim, RANGES)
    for env in EVERY_SETTING:
        try:
            value = sample.value(env)
        except ZeroDivisionError:
            continue
        assert low <= value <= high


@given(st.integers(-5, 5), st.integers(-5, 5), st.integers(-4, 4), st.integers(0, 6))
def test_bounds_of_one_symbol_at_degree_one_are_exact(slope: int, offset: int, low: int, span: int) -> None:
    values = [slope * n + offset for n in range(low, low + span + 1)]
    assert bounds(expr.add(expr.mul(slope, N), offset), {"n": (low, low + span)}) == (min(values), max(values))


def test_bounds_are_not_clipped() -> None:
    assert bounds(N * N * N, {"n": (0, 1 << 40)}) == (0, 1 << 120)


def test_a_symbol_without_a_range_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="m"):
        bounds(symbol("m") + 1, {"n": (0, 1)})


@given(samples())
def test_only_what_holds_everywhere_is_called_nonnegative(sample: Sample) -> None:
    if is_nonnegative(sample.dim, RANGES):
        for env in EVERY_SETTING:
            try:
                assert sample.value(env) >= 0
            except ZeroDivisionError:
                continue


def points(extents: Mapping[str, Dim], env: dict[str, int]) -> Iterator[dict[str, int]]:
    """Every setting of the indices, each of which runs over `0 .. extent - 1` in terms of those before it."""
    if not extents:
        yield env
        return
    name, *_ = extents
    rest = {other: extent for other, extent in extents.items() if other != name}
    for value in range(expr.evaluate(extents[name], env)):
        yield from points(rest, {**env, name: value})


LINEAR = st.tuples(*[st.integers(-3, 3)] * 5)
EXTENTS: dict[str, dict[str, Dim]] = {
    "constant": {"i": 4, "j": 3},
    "a symbol": {"i": N, "j": 3},
    "a triangle": {"i": 4, "j": INDEX + 1},
    "the rest of a row": {"i": 4, "j": 4 - INDEX},
    # The names sort the other way round: i is the piece, j the block.
    "the last piece is shorter": {"j": expr.ceildiv(N, 3), "i": expr.minimum(3, N - J * 3)},
}


@pytest.mark.parametrize("kind", EXTENTS)
@given(LINEAR, LINEAR)
def test_no_false_claim_about_loop_indices(kind: str, linear: tuple[int, ...], crossed: tuple[int, ...]) -> None:
    extents = EXTENTS[kind]
    one, n, i, j, ij = linear
    dim = expr.add(one, expr.mul(n, N), expr.mul(i, INDEX), expr.mul(j, J), expr.mul(ij, INDEX, J))
    dim = expr.add(dim, expr.mul(crossed[0], N, INDEX), expr.mul(crossed[1], expr.floordiv(INDEX + N, 2)))
    if is_nonnegative(dim, {"n": (0, 5)}, extents):
        for size in range(6):
            for env in points(extents, {"n": size}):
                assert expr.evaluate(dim, env) >= 0


PROVABLE: list[tuple[Dim, dict[str, Dim]]] = [
    (N - 1 - INDEX, {"i": N}),
    (N * 4 - 1 - (INDEX * 4 + J), {"i": N, "j": 4}),
    (INDEX * J, {"i": N, "j": 7}),
    (3 - INDEX - J, {"i": 4 - J, "j": 4}),
    (expr.floordiv(INDEX, 2), {"i": N}),
    (N * INDEX + 7 - INDEX, {"i": 2}),
]


@pytest.mark.parametrize(("dim", "extents"), PROVABLE)
def test_bounds_of_kernels_are_proven(dim: Dim, extents: dict[str, Dim]) -> None:
    assert is_nonnegative(dim, {"n": (1, 1 << 30)}, extents)


@pytest.mark.parametrize(
    ("dim", "extents"),
    [(N - INDEX, {"i": N + 2}), (N - 2, {}), (INDEX - J, {"i": 4, "j": 4}), (-INDEX - J, {"i": 2, "j": N})],
)
def test_false_bounds_are_not_proven(dim: Dim, extents: dict[str, Dim]) -> None:
    assert not is_nonnegative(dim, {"n": (1, 4)}, extents)


@given(samples(4), st.lists(st.sampled_from("ab"), unique=True))
def test_substituting_a_bound_stays_within_the_bounds(sample: Sample, fixed: list[str]) -> None:
    low, high = bounds(sample.dim, RANGES)
    for ends in itertools.product(*(RANGES[name] for name in fixed)):
        try:
            replaced = expr.substitute(sample.dim, dict(zip(fixed, ends, strict=True)))
        except ExprError:
            continue
        if isinstance(replaced, int):
            assert low <= replaced <= high
