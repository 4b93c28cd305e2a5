"""Symbols have the values that the sizes and integers of a call give them, whatever is linear in them."""

from __future__ import annotations

import itertools
import re
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorkiln.errors import CallBoundsError, CallInputError
from tensorkiln.expr import Dim, add, evaluate, floordiv, maximum, mul, sub, symbol
from tensorkiln.frontends.solve_symbols import ArgumentSymbols, Place, SymbolSolver

N, M, K = symbol("n"), symbol("m"), symbol("k")
RANGES = {"n": (0, 9), "m": (1, 9), "k": (-4, 9)}


def array(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int8)


@pytest.mark.parametrize(
    ("shapes", "integers"),
    [
        ([(mul(2, N),)], {}),
        ([(add(mul(3, N), -1, 4), 5)], {}),
        ([(sub(20, N),)], {}),
        ([(mul(N, N),)], {}),
        ([(add(mul(N, N, N), mul(2, N), 1),)], {}),
        ([(add(N, M), N)], {}),
        ([(add(N, mul(2, M)), mul(3, N)), (4,)], {}),
        ([(mul(M, add(N, 1)), N)], {}),
        ([(floordiv(N, 2), mul(2, N))], {}),
        ([(add(mul(M, N), M), 1), (M,)], {}),
        ([(add(K, 4),)], {"count": K}),
        ([(add(K, N, M),), (M,)], {"count": add(mul(-2, K), 7), "three": 3}),
    ],
)
def test_values_are_those_that_the_sizes_were_made_of(shapes: list[tuple[Dim, ...]], integers: dict[str, Dim]) -> None:
    named = {f"x{number}": shape for number, shape in enumerate(shapes)}
    used = {name for dim in (*itertools.chain(*shapes), *integers.values()) for name in RANGES if name in str(dim)}
    symbols = ArgumentSymbols(named, {name: RANGES[name] for name in used}, integers)
    assert (symbols.solved, symbols.unsolved) == (used, ())
    for n, m, k in itertools.product((0, 1, 5, 9), (1, 2, 9), (-4, 0, 9)):
        values = {"n": n, "m": m, "k": k}
        sizes = {name: [evaluate(dim, values) for dim in shape] for name, shape in named.items()}
        if any(size < 0 for shape in sizes.values() for size in shape):
            continue
        call = {name: array(*shape) for name, shape in sizes.items()}
        found = symbols.values(call | {name: evaluate(dim, values) for name, dim in integers.items()})
        assert found == {name: values[name] for name in used}


@given(
    st.lists(st.integers(-3, 3), min_size=4, max_size=4),
    st.lists(st.integers(0, 20), min_size=3, max_size=3),
)
def test_shapes_have_one_solution_or_are_refused(factors: list[int], sizes: list[int]) -> None:
    """Every size of a call that is taken is what the symbols make it, and no call is refused that has such symbols."""
    a, b, c, d = factors
    dims = (add(mul(a, N), b), add(mul(c, M), mul(d, N)), M)
    symbols = ArgumentSymbols({"x": dims}, {name: RANGES[name] for name in ("n", "m")})
    fitting = [
        {"n": n, "m": m}
        for n, m in itertools.product(range(10), range(1, 10))
        if [evaluate(dim, {"n": n, "m": m}) for dim in dims] == sizes
    ]
    if "n" in symbols.unsolved:
        assert (a, d) == (0, 0)
        return
    try:
        found = symbols.of_arrays([array(*sizes)])
    except (CallInputError, CallBoundsError):
        assert not fitting
    else:
        assert fitting == [found]


@pytest.mark.parametrize(
    ("shapes", "given_", "error", "message"),
    [
        (
            [(add(mul(2, N), 1),)],
            [(6,)],
            CallInputError,
            "axis 0 of x0 has the size 6, and must be 2*n + 1 for an integer n; near it are 5 and 7",
        ),
        ([(mul(N, N),)], [(8,)], CallInputError, "must be n*n for an integer n; near it are 4 and 9"),
        (
            [(3, N), (add(N, 1),)],
            [(3, 4), (6,)],
            CallInputError,
            "axis 0 of x1 has the size 6, and must be n + 1, here 5, since axis 1 of x0 has the size 4; pass arguments",
        ),
        ([(3, N)], [(2, 4)], CallInputError, "axis 0 of x0 has the size 2, and must be 3"),
        ([(N, N)], [(2, 4)], CallInputError, "axis 1 of x0 has the size 4, and must be n, here 2"),
        (
            [(3, N)],
            [(4,)],
            CallInputError,
            "x0 has the shape (4) of rank 1, and must have the rank 2, of the shape (3, n)",
        ),
        (
            [(mul(2, N),)],
            [(40,)],
            CallBoundsError,
            "axis 0 of x0 has the size 40, which makes the symbol n 20, and it is from 0 to 9: pass another size, or",
        ),
        ([(mul(N, N),)], [(400,)], CallBoundsError, "makes the symbol n 20"),
        ([(N, mul(N, M))], [(0, 0)], CallInputError, "which gives no m where n is 0: pass other sizes"),
    ],
)
def test_unsolvable_shapes_are_refused_by_argument_and_axis(
    shapes: list[tuple[Dim, ...]], given_: list[tuple[int, ...]], error: type[Exception], message: str
) -> None:
    used = {name: RANGES[name] for name in ("n", "m") if any(name in str(dim) for shape in shapes for dim in shape)}
    symbols = ArgumentSymbols({f"x{number}": shape for number, shape in enumerate(shapes)}, used)
    with pytest.raises(error, match=re.escape(message)):
        symbols.of_arrays([array(*shape) for shape in given_])


def test_arguments_other_than_arrays_and_integers_are_refused() -> None:
    symbols = ArgumentSymbols({"x": (N,)}, RANGES, {"count": N})
    with pytest.raises(CallInputError, match="x must be an array; given is a list"):
        symbols.values({"x": [1, 2], "count": 2})
    for wrong in (2.0, True, "2", None):
        with pytest.raises(CallInputError, match="count must be an integer; given is a"):
            symbols.values({"x": array(2), "count": wrong})
    assert symbols.values({"x": array(2), "count": np.int32(2)}) == {"n": 2}


def test_an_array_may_say_its_shape_by_the_interface_of_cuda_alone() -> None:
    class OnGpu:
        __cuda_array_interface__: ClassVar = {"shape": (7,)}

    assert ArgumentSymbols({"x": (N,)}, {"n": (0, 9)}).of_arrays([OnGpu()]) == {"n": 7}


def test_a_symbol_that_nothing_gives_by_itself_is_left_to_the_caller() -> None:
    symbols = ArgumentSymbols({"x": (add(N, M), maximum(K, 4))}, RANGES)
    assert (symbols.solved, symbols.unsolved) == (frozenset(), ("k", "m", "n"))
    known = {"n": 2, "m": 3, "k": 1}
    assert symbols.of_arrays([array(5, 4)], known) == known
    with pytest.raises(CallInputError, match="axis 1 of x has the size 5, and must be max"):
        symbols.of_arrays([array(5, 5)], known)
    with pytest.raises(CallInputError, match="axis 0 of x has the size 6"):
        symbols.of_arrays([array(6, 4)], known)


def test_sizes_may_be_as_large_as_the_arithmetic_of_programs() -> None:
    solver = SymbolSolver([Place("it is", mul(N, N)), Place("the other is", mul(N, N, N))])
    found = solver.solve([(1 << 62), 0])
    assert found == {"n": 1 << 31}
    with pytest.raises(CallInputError, match="the other is 0, and must be n\\*n\\*n, which has no value"):
        solver.check([(1 << 62), 0], found)


def test_symbols_that_are_known_before_help_to_find_others() -> None:
    solver = SymbolSolver([Place("the stride is", mul(N, M))], known=("n",))
    assert solver.solve([12], {"n": 4}) == {"n": 4, "m": 3}
