"""`binop pow` of floats has the special values of C's `pow`, whatever exponent is known when it is compiled.

The expected values are those that C17 lists in its annex F.10.4.4, written down one by one: NumPy's power has others
where its exponent is a scalar, for which it may take a square root.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import compiled, emulated
from tests.dialect.wire import binop, graph_of, placeholder

INF, NAN = math.inf, math.nan
RUNS = pytest.mark.parametrize("run", [evaluate, compiled.run, emulated.run], ids=["reference", "cpu", "gpu"])
FLOATS = pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])

BASES = (0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 0.25, -0.25, 4.0, -4.0)
POWERS: dict[float, tuple[float, ...]] = {
    0.0: (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
    0.5: (0.0, 0.0, INF, INF, NAN, 1, NAN, 0.5, NAN, 2, NAN),
    -0.5: (INF, INF, 0.0, 0.0, NAN, 1, NAN, 2, NAN, 0.5, NAN),
    1.0: (0.0, -0.0, INF, -INF, NAN, 1, -1, 0.25, -0.25, 4, -4),
    -1.0: (INF, -INF, 0.0, -0.0, NAN, 1, -1, 4, -4, 0.25, -0.25),
    2.0: (0.0, 0.0, INF, INF, NAN, 1, 1, 0.0625, 0.0625, 16, 16),
    -2.0: (INF, INF, 0.0, 0.0, NAN, 1, 1, 16, 16, 0.0625, 0.0625),
    3.0: (0.0, -0.0, INF, -INF, NAN, 1, -1, 0.015625, -0.015625, 64, -64),
    1.5: (0.0, 0.0, INF, INF, NAN, 1, NAN, 0.125, NAN, 8, NAN),
    INF: (0.0, 0.0, INF, INF, NAN, 1, 1, 0.0, 0.0, INF, INF),
    -INF: (INF, INF, 0.0, 0.0, NAN, 1, 1, INF, INF, 0.0, 0.0),
    NAN: (NAN, NAN, NAN, NAN, NAN, 1, NAN, NAN, NAN, NAN, NAN),
}
"""What each of BASES is to the power of the key."""
SCALARS = (0.5, 1.0, -1.0, 2.0, 3.0)
"""Most of them are powers that are computed in another way where they are known."""


def check(actual: Any, expected: tuple[float, ...]) -> None:
    values = actual.astype(np.float64).tolist()
    for base, value, wanted in zip(BASES, values, expected, strict=True):
        if math.isnan(wanted):
            assert math.isnan(value), (base, value)
        else:
            assert (value, math.copysign(1, value)) == (wanted, math.copysign(1, wanted)), (base, value)


def powers(dtype: str, exponents: tuple[float, ...]) -> Graph:
    """The bases to the power of each exponent, a constant; and to that of each of as many scalars."""
    constants = [
        {"node": "const_scalar", "value": str(value) if not math.isfinite(value) else value, "out_var": 100 + number}
        for number, value in enumerate(exponents)
    ]
    places = [placeholder(0, [len(BASES)], dtype), *(placeholder(1 + n, [], dtype) for n in range(len(exponents)))]
    known = [binop(200 + number, 0, 100 + number, "pow", dtype) for number in range(len(exponents))]
    given = [binop(300 + number, 0, 1 + number, "pow", dtype) for number in range(len(exponents))]
    nodes = [*places, *({**constant, "dtype": dtype} for constant in constants), *known, *given]
    return graph_of(nodes, [node["out_var"] for node in (*known, *given)])


@RUNS
@FLOATS
def test_powers_have_the_special_values_of_c(run: Callable[..., tuple[Any, ...]], dtype: str) -> None:
    kind = graph_of([placeholder(0, [1], dtype)], [0]).types[0].dtype.numpy
    scalars = [np.array(value, kind) for value in SCALARS]
    results = run(powers(dtype, SCALARS), np.array(BASES, kind), *scalars)
    for result, exponent in zip(results, SCALARS * 2, strict=True):
        check(result, POWERS[exponent])


@RUNS
def test_a_power_of_tensors_has_them_too(run: Callable[..., tuple[Any, ...]]) -> None:
    shape = [len(POWERS), len(BASES)]
    graph = graph_of([placeholder(0, shape), placeholder(1, shape), binop(2, 0, 1, "pow")], [2])
    bases = np.broadcast_to(np.array(BASES, np.float32), shape)
    exponents = np.broadcast_to(np.array([*POWERS], np.float32)[:, None], shape)
    (results,) = run(graph, bases, exponents)
    for result, expected in zip(results, POWERS.values(), strict=True):
        check(result, expected)


@RUNS
def test_an_even_exponent_of_any_size_makes_an_infinity_positive(run: Callable[..., tuple[Any, ...]]) -> None:
    graph = graph_of(
        [placeholder(0, [2], "float64"), placeholder(1, [2], "float64"), binop(2, 0, 1, "pow", "float64")], [2]
    )
    (result,) = run(graph, np.array([-INF, -INF]), np.array([-(2.0**63), 2.0**63]))
    assert result.tolist() == [0.0, INF]
    assert not np.signbit(result).any()
