import numpy as np
import pytest

from tests.reference.one_node import Array, array, bfloat16, binop, check

INF, NAN = float("inf"), float("nan")
FLOATS = ["float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_division_by_zero_is_ieee(dtype: str) -> None:
    a, b = array([1, -1, 0, 1, INF, 6], dtype), array([0, 0, 0, -0.0, INF, 4], dtype)
    for op in ("div", "fdiv"):
        check(binop(op, a, b), array([INF, -INF, NAN, -INF, NAN, 1.5], dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_mod_is_fmod_with_the_sign_of_the_dividend(dtype: str) -> None:
    a, b = array([7.5, -7.5, 7.5, -4, INF, 1, 5], dtype), array([2, 2, -2, 2, 1, 0, INF], dtype)
    check(binop("mod", a, b), array([1.5, -1.5, 1.5, -0.0, NAN, NAN, 5], dtype))


def test_mod_of_distant_magnitudes_is_exact() -> None:
    big = np.float32(1e30)
    check(binop("mod", array([big], "float32"), array([7], "float32")), array([int(big) % 7], "float32"))


@pytest.mark.parametrize("dtype", FLOATS)
def test_max_and_min_propagate_nan_from_either_side(dtype: str) -> None:
    a, b = array([NAN, 1, NAN, -INF], dtype), array([1, NAN, NAN, INF], dtype)
    check(binop("max", a, b), array([NAN, NAN, NAN, INF], dtype))
    check(binop("min", a, b), array([NAN, NAN, NAN, -INF], dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_max_and_min_order_the_zeros(dtype: str) -> None:
    a, b = array([-0.0, 0.0, -0.0, 0.0], dtype), array([0.0, -0.0, -0.0, 0.0], dtype)
    check(binop("max", a, b), array([0.0, 0.0, -0.0, 0.0], dtype))
    check(binop("min", a, b), array([-0.0, -0.0, -0.0, 0.0], dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_is_less_than_nothing_and_unequal_to_itself(dtype: str) -> None:
    a, b = array([NAN, 1, NAN, 1, -0.0], dtype), array([1, NAN, NAN, 2, 0.0], dtype)
    check(binop("cmplt", a, b, "bool"), array([0, 0, 0, 1, 0], "bool"))
    check(binop("cmpne", a, b, "bool"), array([1, 1, 1, 1, 0], "bool"))
    check(binop("cmpne", a, b, "uint8"), array([1, 1, 1, 1, 0], "uint8"))


@pytest.mark.parametrize(
    ("tiny", "dtype"), [(2.0**-24, "float16"), (2.0**-133, "bfloat16"), (2.0**-149, "float32"), (2.0**-1074, "float64")]
)
def test_denormals_are_kept(tiny: float, dtype: str) -> None:
    check(binop("add", array([tiny], dtype), array([tiny], dtype)), array([2 * tiny], dtype))
    check(binop("mul", array([tiny], dtype), array([0.5], dtype)), array([0.0], dtype))
    check(binop("mul", array([3 * tiny], dtype), array([0.5], dtype)), array([2 * tiny], dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_powers_of_floats(dtype: str) -> None:
    a = array([0, 0, -8, -2, -2, 2, 1, NAN, 4, INF], dtype)
    b = array([0, -1, 1 / 3, 3, 2, -1, NAN, 0, 0.5, -1], dtype)
    check(binop("pow", a, b), array([1, INF, NAN, -8, 4, 0.5, 1, 1, 2, 0], dtype))


def test_float16_overflows_to_infinity_at_65520() -> None:
    check(binop("add", array([65504, 65504], "float16"), array([15, 16], "float16")), array([65504, INF], "float16"))


def test_bfloat16_rounds_once_to_nearest_even() -> None:
    # 1 + 2**-8 lies between 1 and 1 + 2**-7: the even one wins; a little more goes up.
    assert _sum(1.0, 2.0**-8) == 1.0
    assert _sum(1.0, 2.0**-8 + 2.0**-15) == 1.0 + 2.0**-7
    assert _sum(1.0 + 2.0**-7, 2.0**-8) == 1.0 + 2.0**-6


def _sum(a: float, b: float) -> float:
    result: Array = binop("add", bfloat16([a]), bfloat16([b]))
    return float(result[0])


def test_a_scalar_mixes_with_a_tensor_on_either_side() -> None:
    x, two = array([[1, 2], [3, 4]], "float32"), array(2, "float32")
    check(binop("sub", x, two), array([[-1, 0], [1, 2]], "float32"))
    check(binop("sub", two, x), array([[1, 0], [-1, -2]], "float32"))
    check(binop("sub", two, two), array(0, "float32"))


def test_an_empty_tensor_stays_empty() -> None:
    empty = np.zeros((0, 3), np.float32)
    check(binop("add", empty, array(1, "float32")), empty)
