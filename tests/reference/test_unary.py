import math

import numpy as np
import pytest

from tests.reference.one_node import array, bfloat16, check, run_node, unary

INF, NAN = float("inf"), float("nan")
FLOATS = ["float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_edges_of_the_float_functions(dtype: str) -> None:
    x = array([0.0, -0.0, INF, -INF, NAN, -1, 4], dtype)
    check(unary("log2", x), array([-INF, -INF, INF, NAN, NAN, NAN, 2], dtype))
    check(unary("exp2", x), array([1, 1, INF, 0, NAN, 0.5, 16], dtype))
    check(unary("sqrt", x), array([0.0, -0.0, INF, NAN, NAN, NAN, 2], dtype))
    check(unary("recip", x), array([INF, -INF, 0.0, -0.0, NAN, -1, 0.25], dtype))
    check(unary("neg", x), array([-0.0, 0.0, -INF, INF, NAN, 1, -4], dtype))
    check(unary("sin", x)[:5], array([0.0, -0.0, NAN, NAN, NAN], dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_trunc_rounds_toward_zero_and_keeps_what_has_no_fraction(dtype: str) -> None:
    x = array([0.5, -0.5, 0.0, -0.0, 1.75, -1.75, 2.5, 100, INF, -INF, NAN], dtype)
    check(unary("trunc", x), array([0.0, -0.0, 0.0, -0.0, 1, -1, 2, 100, INF, -INF, NAN], dtype))


def test_log2_of_denormals_is_exact() -> None:
    check(unary("log2", array([2.0**-149, 2.0**-127], "float32")), array([-149, -127], "float32"))
    check(unary("log2", array([2.0**-1074], "float64")), array([-1074], "float64"))
    check(unary("log2", array([2.0**-24], "float16")), array([-24], "float16"))


def test_exp2_reaches_denormals_and_overflows() -> None:
    x = array([-149, -150, -151, 127, 128], "float32")
    check(unary("exp2", x), array([2.0**-149, 0, 0, 2.0**127, INF], "float32"))
    check(unary("exp2", array([-1074, 1023, 1024], "float64")), array([2.0**-1074, 2.0**1023, INF], "float64"))


# 355 and 103993 are numerators of convergents of pi: their sines come from the range reduction alone.
@pytest.mark.parametrize("value", [355.0, 103993.0, 1e6, 1e22, 2.0**1000])
def test_sin_reduces_the_range_of_large_arguments(value: float) -> None:
    np.testing.assert_allclose(unary("sin", array([value], "float64")), [math.sin(value)], rtol=1e-15)


def test_sin_of_355_is_the_known_value() -> None:
    np.testing.assert_allclose(unary("sin", array([355], "float64")), [-3.014435335948845e-5], rtol=1e-15)
    check(unary("sin", array([355], "float32")), array([-3.014435335948845e-5], "float32"))


def test_bfloat16_functions_round_once() -> None:
    check(unary("sqrt", bfloat16([2])), bfloat16([1.4140625]))
    check(unary("recip", bfloat16([3])), bfloat16([0.333984375]))


def test_negation_wraps_and_of_bool_is_not() -> None:
    check(unary("neg", array([1, -128, 0], "int8")), array([-1, -128, 0], "int8"))
    check(unary("neg", array([1, 255, 0], "uint8")), array([255, 1, 0], "uint8"))
    check(unary("neg", array([-(2**63)], "int64")), array([-(2**63)], "int64"))
    check(unary("neg", array([True, False], "bool")), array([False, True], "bool"))


def _where(condition: str, a: object, b: object, c: object) -> np.ndarray:
    node = {"node": "ternary", "op": "where", "a_var": 0, "b_var": 1, "c_var": 2, "dtype": "float32"}
    return run_node(node, array(a, condition), array(b, "float32"), array(c, "float32"))


def test_where_takes_any_nonzero_byte_as_true() -> None:
    check(_where("uint8", [0, 1, 2, 255], [1, 2, 3, 4], [-1, -2, -3, -4]), array([-1, 2, 3, 4], "float32"))
    check(_where("bool", [0, 1], [NAN, 2], [5, NAN]), array([5, 2], "float32"))


def test_where_mixes_scalars_and_tensors() -> None:
    check(_where("bool", [True, False], 1, 2), array([1, 2], "float32"))
    check(_where("bool", True, [1, 2], 3), array([1, 2], "float32"))
    check(_where("bool", False, 1, 3), array(3, "float32"))


def _mulacc(a: object, b: object, c: object, dtype: str) -> np.ndarray:
    node = {"node": "ternary", "op": "mulacc", "a_var": 0, "b_var": 1, "c_var": 2, "dtype": dtype}
    return run_node(node, array(a, dtype), array(b, dtype), array(c, dtype))


def test_mulacc_multiplies_then_adds() -> None:
    check(_mulacc([2, -3], [4, 5], [1, 1], "float32"), array([9, -14], "float32"))
    check(_mulacc([100, -128], [3, -1], [1, 0], "int8"), array([301 - 256, -128], "int8"))
    check(_mulacc([2, INF], [0.5, 0], 1, "bfloat16"), array([2, NAN], "bfloat16"))
