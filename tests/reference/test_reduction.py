import numpy as np
import pytest

from tests.reference.one_node import Array, array, check, run_node

INF, NAN = float("inf"), float("nan")
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def _reduce(kind: str, x: Array, dtype: str, axes: list[int], shape: list[int] | None = None) -> Array:
    node = {"node": "reduce_axis", "in_var": 0, "reduce_op_kind": kind, "axes": axes, "dtype": dtype}
    return run_node(node, x, shape=shape)


def test_only_the_named_axes_are_reduced_and_kept_without_metadata() -> None:
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    check(_reduce("sum", x, "int32", [1]), array([[3], [12]], "int32"))
    check(_reduce("sum", x, "int32", [0]), array([[3, 5, 7]], "int32"))
    check(_reduce("sum", x, "int32", [0, 1]), array([[15]], "int32"))


def test_metadata_of_lower_rank_squeezes_the_axes() -> None:
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    check(_reduce("sum", x, "int32", [1], [2]), array([3, 12], "int32"))
    check(_reduce("sum", x, "int32", [1], [2, 1]), array([[3], [12]], "int32"))
    check(_reduce("max", x, "int32", [0, 1], []), array(5, "int32"))


def test_no_axes_is_the_identity() -> None:
    x = array([[1.5, -0.0]], "float32")
    check(_reduce("max", x, "float32", []), x)
    check(_reduce("sum", x, "float32", []), x)
    check(_reduce("prod", array(4, "int8"), "int8", []), array(4, "int8"))


@pytest.mark.parametrize("dtype", FLOATS)
def test_an_empty_float_reduction_is_the_identity(dtype: str) -> None:
    x = array(np.zeros((2, 0)), dtype)
    check(_reduce("sum", x, dtype, [1]), array([[0], [0]], dtype))
    check(_reduce("max", x, dtype, [1]), array([[-INF], [-INF]], dtype))
    check(_reduce("prod", x, dtype, [1]), array([[1], [1]], dtype))
    check(_reduce("max", x, dtype, [0]), array(np.zeros((1, 0)), dtype))


@pytest.mark.parametrize(("dtype", "least"), [("int8", -128), ("int64", -(2**63)), ("uint8", 0), ("uint64", 0)])
def test_an_empty_integer_reduction_is_the_identity(dtype: str, least: int) -> None:
    x = np.zeros((0,), dtype)
    check(_reduce("sum", x, dtype, [0]), array([0], dtype))
    check(_reduce("max", x, dtype, [0]), array([least], dtype))
    check(_reduce("prod", x, dtype, [0]), array([1], dtype))


def test_an_empty_bool_reduction_is_the_identity() -> None:
    x = np.zeros((0,), np.bool_)
    for kind, expected in {"sum": False, "max": False, "prod": True}.items():
        check(_reduce(kind, x, "bool", [0]), array([expected], "bool"))


def test_bool_sums_with_or_and_multiplies_with_and() -> None:
    x = array([[0, 0], [0, 1], [1, 1]], "bool")
    check(_reduce("sum", x, "bool", [1]), array([[0], [1], [1]], "bool"))
    check(_reduce("max", x, "bool", [1]), array([[0], [1], [1]], "bool"))
    check(_reduce("prod", x, "bool", [1]), array([[0], [0], [1]], "bool"))


def test_integer_sums_and_products_wrap_in_their_own_dtype() -> None:
    check(_reduce("sum", array([100, 100, 100], "int8"), "int8", [0]), array([300 - 256], "int8"))
    check(_reduce("prod", array([16, 16, 3], "uint8"), "uint8", [0]), array([0], "uint8"))
    check(_reduce("sum", array([2**31 - 1, 1], "int32"), "int32", [0]), array([-(2**31)], "int32"))
    check(_reduce("sum", array([2**64 - 1, 3], "uint64"), "uint64", [0]), array([2], "uint64"))


def test_integer_max_spans_the_whole_range() -> None:
    check(_reduce("max", array([-(2**31), -5], "int32"), "int32", [0]), array([-5], "int32"))
    check(_reduce("max", array([2**63, 1], "uint64"), "uint64", [0]), array([2**63], "uint64"))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("values", [[1, NAN, 3], [NAN, 1, 3], [1, 3, NAN], [INF, NAN, 0]])
def test_max_propagates_nan_from_any_place(dtype: str, values: list[float]) -> None:
    check(_reduce("max", array(values, dtype), dtype, [0]), array([NAN], dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_max_is_minus_zero_only_when_every_zero_is(dtype: str) -> None:
    x = array([[-0.0, 0.0, -1], [0.0, -0.0, -1], [-0.0, -0.0, -1], [-0.0, -INF, -2]], dtype)
    check(_reduce("max", x, dtype, [1]), array([[0.0], [0.0], [-0.0], [-0.0]], dtype))


def test_a_16_bit_sum_is_rounded_once_at_the_end() -> None:
    # Each step in float16 would stay at 2048, where the spacing is 2; in bfloat16 at 256.
    check(_reduce("sum", array([2048] + [1] * 4, "float16"), "float16", [0]), array([2052], "float16"))
    check(_reduce("sum", array([256] + [1] * 4, "bfloat16"), "bfloat16", [0]), array([260], "bfloat16"))


def test_a_float32_sum_keeps_what_float32_steps_would_lose() -> None:
    x = array([2.0**24] + [1] * 8, "float32")
    check(_reduce("sum", x, "float32", [0]), array([2.0**24 + 8], "float32"))


def test_infinities_of_both_signs_sum_to_nan() -> None:
    check(_reduce("sum", array([INF, -INF], "float32"), "float32", [0]), array([NAN], "float32"))
    check(_reduce("prod", array([INF, 0], "float32"), "float32", [0]), array([NAN], "float32"))


def _contract(a: Array, b: Array, axes: list[list[int]], dtype: str) -> Array:
    return run_node({"node": "contract", "in_vars": [0, 1], "contraction_axes": axes, "dtype": dtype}, a, b)


def test_contract_is_tensordot() -> None:
    a, b = array([[1, 2, 3], [4, 5, 6]], "float32"), array([[1, 0, 1], [2, 1, 0]], "float32")
    check(_contract(a, b, [[1, 1]], "float32"), array([[4, 4], [10, 13]], "float32"))
    check(_contract(a, b, [[0, 0], [1, 1]], "float32"), array(1 + 0 + 3 + 8 + 5 + 0, "float32"))
    check(_contract(a, b, [[1, 1], [0, 0]], "float32"), array(17, "float32"))


def test_contract_over_no_axes_is_the_outer_product() -> None:
    a, b = array([1, 2], "int8"), array([100, 3, 0], "int8")
    check(_contract(a, b, [], "int8"), array([[100, 3, 0], [200 - 256, 6, 0]], "int8"))


def test_contract_over_an_empty_axis_is_0() -> None:
    check(_contract(np.zeros((2, 0), np.float32), np.zeros((0, 1), np.float32), [[1, 0]], "float32"),
          array([[0], [0]], "float32"))  # fmt: skip


def _wmma(a: Array, b: Array, c: Array, dtype: str) -> Array:
    sizes = {"m": a.shape[0], "n": b.shape[1], "k": a.shape[1]}
    return run_node({"node": "wmma", "a_var": 0, "b_var": 1, "c_var": 2, **sizes, "dtype": dtype}, a, b, c)


def test_wmma_multiplies_and_adds_in_the_dtype_of_c() -> None:
    a, b = array([[1, 2, 3]], "float16"), array([[1], [10], [1000]], "float16")
    check(_wmma(a, b, array([[0.5]], "float32"), "float32"), array([[3021.5]], "float32"))


def test_wmma_of_float16_tiles_keeps_float32_products() -> None:
    # 300 * 300 overflows float16; in the accumulator it cancels.
    a, b = array([[300, 300]], "float16"), array([[300], [-300]], "float16")
    check(_wmma(a, b, array([[1]], "float16"), "float16"), array([[1]], "float16"))
