import numpy as np
import pytest

from tests.reference.one_node import array, bfloat16, cast, check, run_node

INF, NAN = float("inf"), float("nan")
EDGES = [NAN, INF, -INF, 300.7, -1.9, 1e30, -1e30, 0.5, -0.5]
INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("int32", [0, INT32_MAX, -INT32_MAX - 1, 300, -1, INT32_MAX, -INT32_MAX - 1, 0, 0]),
        ("int64", [0, INT64_MAX, -INT64_MAX - 1, 300, -1, INT64_MAX, -INT64_MAX - 1, 0, 0]),
        ("int8", [0, -1, 0, 44, -1, -1, 0, 0, 0]),
        ("uint8", [0, 255, 0, 44, 255, 255, 0, 0, 0]),
        ("int16", [0, -1, 0, 300, -1, -1, 0, 0, 0]),
        ("uint16", [0, 65535, 0, 300, 65535, 65535, 0, 0, 0]),
        ("uint32", [0, 2**32 - 1, 0, 300, 2**32 - 1, 2**32 - 1, 0, 0, 0]),
        ("uint64", [0, 2**64 - 1, 2**63, 300, 2**64 - 1, 2**64 - 1, 2**63, 0, 0]),
    ],
)
def test_float_to_integer_truncates_saturates_and_wraps(source: str, target: str, expected: list[int]) -> None:
    check(cast(array(EDGES, source), target), array(expected, target))


def test_a_float_between_the_int32_and_uint32_ranges_keeps_its_value_in_uint32() -> None:
    x = array([3e9, 2.0**32, 2.0**32 + 4096, -3e9], "float64")
    check(cast(x, "uint32"), array([3_000_000_000, 0, 4096, 2**32 - 3_000_000_000], "uint32"))


def test_the_bounds_of_64_bits_are_exact() -> None:
    below = np.nextafter(2.0**63, 0)
    check(cast(array([2.0**63, below, -(2.0**63)], "float64"), "int64"),
          array([INT64_MAX, int(below), -(2**63)], "int64"))  # fmt: skip
    below = np.nextafter(2.0**64, 0)
    check(cast(array([2.0**64, below, 2.0**63], "float64"), "uint64"),
          array([2**64 - 1, int(below), 2**63], "uint64"))  # fmt: skip


@pytest.mark.parametrize("source", ["float16", "bfloat16"])
def test_16_bit_floats_saturate_from_infinity(source: str) -> None:
    x = array([INF, -INF, NAN, 2.5, -2.5], source)
    check(cast(x, "int64"), array([INT64_MAX, -INT64_MAX - 1, 0, 2, -2], "int64"))
    check(cast(x, "uint8"), array([255, 0, 0, 2, 254], "uint8"))


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
def test_anything_but_0_is_true(source: str) -> None:
    check(cast(array([0.0, -0.0, 0.5, NAN, INF], source), "bool"), array([0, 0, 1, 1, 1], "bool"))


def test_integers_to_bool_and_back() -> None:
    check(cast(array([0, 256, -1], "int32"), "bool"), array([0, 1, 1], "bool"))
    for target in ("int8", "uint64", "float16", "bfloat16", "float64"):
        check(cast(array([True, False], "bool"), target), array([1, 0], target))


def test_integers_narrow_by_wrapping_and_widen_by_their_sign() -> None:
    check(cast(array([300, -1, -129], "int32"), "int8"), array([44, -1, 127], "int8"))
    check(cast(array([-1], "int8"), "uint64"), array([2**64 - 1], "uint64"))
    check(cast(array([255], "uint8"), "int16"), array([255], "int16"))
    check(cast(array([2**64 - 1], "uint64"), "int64"), array([-1], "int64"))


def test_integers_round_to_nearest_even_once() -> None:
    check(cast(array([2**24 + 1, 2**24 + 3], "int32"), "float32"), array([2.0**24, 2.0**24 + 4], "float32"))
    check(cast(array([2**53 + 1, INT64_MAX], "int64"), "float64"), array([2.0**53, 2.0**63], "float64"))
    check(cast(array([2**64 - 1], "uint64"), "float32"), array([2.0**64], "float32"))
    check(cast(array([2049, 2051, 65519, 65520, -(2**63)], "int64"), "float16"),
          array([2048, 2052, 65504, INF, -INF], "float16"))  # fmt: skip


@pytest.mark.parametrize("bit", [40, 61])
def test_a_long_integer_reaches_bfloat16_with_one_rounding(bit: int) -> None:
    # Half way between two bfloat16, plus one: float32 or float64 in between would lose the one and round down.
    half_way = (1 << bit) + (1 << (bit - 8))
    above = (1 << bit) + (1 << (bit - 7))
    values = [half_way - 1, half_way, half_way + 1, -half_way - 1]
    wanted = bfloat16([2.0**bit, 2.0**bit, float(above), -float(above)])
    check(cast(array(values, "int64"), "bfloat16"), wanted)
    check(cast(array(values[:3], "uint64"), "bfloat16"), wanted[:3])


def test_float64_reaches_bfloat16_and_float16_with_one_rounding() -> None:
    half_way = 1 + 2.0**-8
    x = array([half_way, half_way + 2.0**-40, -half_way - 2.0**-40, 1e39, NAN, 2.0**-134, 2.0**-134 * 1.001], "float64")
    wanted = [1, 1 + 2.0**-7, -1 - 2.0**-7, INF, NAN, 0, 2.0**-133]
    check(cast(x, "bfloat16"), bfloat16(wanted))
    half_way = 1 + 2.0**-11
    check(cast(array([half_way, half_way + 2.0**-40], "float64"), "float16"), array([1, 1 + 2.0**-10], "float16"))


def test_floats_widen_exactly_and_keep_signed_zeros() -> None:
    check(cast(array([-0.0, 2.0**-24, INF, NAN], "float16"), "float32"), array([-0.0, 2.0**-24, INF, NAN], "float32"))
    check(cast(array([1e-40], "float32"), "float64"), array([float(np.float32(1e-40))], "float64"))


def _bitcast(x: np.ndarray, target: str) -> np.ndarray:
    return run_node({"node": "bitcast", "in_var": 0, "target_dtype": target, "dtype": target}, x)


def test_bitcast_keeps_the_bits() -> None:
    check(_bitcast(array([1.0, -0.0, INF], "float32"), "uint32"), array([0x3F800000, 2**31, 0x7F800000], "uint32"))
    check(_bitcast(array([0x3F80, 0xFF80], "uint16"), "bfloat16"), bfloat16([1, -INF]))
    check(_bitcast(array(-1, "int8"), "uint8"), array(255, "uint8"))


def test_bitcast_to_another_size_scales_the_last_axis_little_endian() -> None:
    check(_bitcast(array([[1.0], [2.0]], "float32"), "uint8"), array([[0, 0, 128, 63], [0, 0, 0, 64]], "uint8"))
    check(_bitcast(array([[0x01020304, 5]], "uint32"), "uint64"), array([[0x0000000501020304]], "uint64"))
    check(_bitcast(np.zeros((3, 0), np.float32), "uint8"), np.zeros((3, 0), np.uint8))
