"""Every strategy gives graphs that validate, that the reference evaluates, and that agree with themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorkiln import reference
from tensorkiln.dtypes import DType
from tensorkiln.nodes import NODE_KINDS
from tests.numerics.cases import CHAINS, KINDS, Case, Tolerance, chain_for, compare, dtypes_of, graph_for, ops_of
from tests.numerics.cases.turns import EXAMPLES

SMALL = settings(
    max_examples=5 * EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def _check(case: Case) -> None:
    results = reference.evaluate(case.graph, *case.arrays, **case.symbols)
    assert len(results) == len(case.graph.output_vars) >= 1
    for var, result in zip(case.graph.output_vars, results, strict=True):
        assert result.dtype == case.graph.types[var].dtype.numpy
        assert result.size <= 700
    compare(reference.evaluate(case.graph, *case.arrays, **case.symbols), results, case.tolerance)


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_generated_graph_evaluates(kind: str, symbolic: bool) -> None:
    @SMALL
    @given(st.sampled_from(dtypes_of(kind)).flatmap(lambda dtype: graph_for(kind, dtype, symbolic)))
    def run(case: Case) -> None:
        assert kind in {node.node for node in case.graph.nodes}
        _check(case)

    run()


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("name", CHAINS)
def test_every_network_evaluates(name: str, symbolic: bool) -> None:
    @SMALL
    @given(st.sampled_from(CHAINS[name].dtypes).flatmap(lambda dtype: chain_for(name, dtype, symbolic)))
    def run(case: Case) -> None:
        _check(case)

    run()


def test_a_symbolic_case_has_symbols_and_a_static_one_has_none() -> None:
    @SMALL
    @given(graph_for("pad", DType.FLOAT32, True), graph_for("pad", DType.FLOAT32, False))
    def run(symbolic: Case, static: Case) -> None:
        assert symbolic.symbols
        assert not static.symbols

    run()


def test_the_kinds_are_the_45() -> None:
    assert set(KINDS) == set(NODE_KINDS)
    assert len(KINDS) == 45


def test_a_kind_with_variants_takes_each_of_them() -> None:
    assert ops_of("binop", DType.BOOL) == ("add", "mul", "max", "min", "cmplt", "cmpne", "xor", "or", "and")
    assert len(ops_of("cast", DType.INT8)) == 22
    assert len(ops_of("cast", DType.INT16)) == 13
    assert ops_of("pad", DType.INT8) == ("",)


def _floats(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array(values, np.float32)


def test_an_exact_comparison_sees_one_step_and_the_sign_of_zero() -> None:
    compare(_floats(1, np.nan, np.inf), _floats(1, -np.nan, np.inf))
    for wrong in (_floats(np.nextafter(np.float32(1), np.float32(2))), _floats(-1), _floats(np.nan)):
        with pytest.raises(AssertionError):
            compare(wrong, _floats(1))
    with pytest.raises(AssertionError):
        compare(_floats(-0.0), _floats(0.0))
    compare(_floats(-0.0), _floats(0.0), Tolerance(signed_zeros=False))


def test_steps_count_representable_values_up_to_infinity_and_through_zero() -> None:
    greatest = float(np.finfo(np.float32).max)
    compare(_floats(np.inf), _floats(greatest), Tolerance(ulps=1))
    compare(_floats(1e-45), _floats(-1e-45), Tolerance(ulps=2))
    with pytest.raises(AssertionError):
        compare(_floats(1e-45), _floats(-1e-45), Tolerance(ulps=1))
    with pytest.raises(AssertionError):
        compare(_floats(-greatest), _floats(greatest), Tolerance(ulps=1000))
    with pytest.raises(AssertionError):
        compare(np.array([-1e308]), np.array([1e308]), Tolerance(ulps=1000))


def test_integers_are_exact_whatever_is_tolerated() -> None:
    with pytest.raises(AssertionError, match=r"2 of 3 differ"):
        compare(np.array([1, 2, 3]), np.array([1, 3, 4]), Tolerance(ulps=9, absolute=9))


def test_dtype_and_shape_are_compared() -> None:
    with pytest.raises(AssertionError, match="dtype"):
        compare(np.zeros(1, np.int8), np.zeros(1, np.int16))
    with pytest.raises(AssertionError, match="shape"):
        compare(np.zeros((1, 2)), np.zeros(2))
    with pytest.raises(AssertionError, match="2 outputs, expected 1"):
        compare((np.zeros(1), np.zeros(1)), (np.zeros(1),))
