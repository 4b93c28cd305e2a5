import numpy as np
import pytest

from tests.reference.one_node import Array, array, check, run_node

X = array([[10, 11, 12], [20, 21, 22]], "float32")
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def _gather(src: Array, indices: Array, axis: int, dtype: str = "float32") -> Array:
    return run_node({"node": "gather", "src_var": 0, "indices_var": 1, "axis": axis, "dtype": dtype}, src, indices)


def test_gather_takes_along_the_axis() -> None:
    check(_gather(X, array([[2, 0], [1, 1]], "int32"), 1), array([[12, 10], [21, 21]], "float32"))
    check(_gather(X, array([[1, 0, 1]], "int64"), 0), array([[20, 11, 22]], "float32"))


def test_gather_has_the_shape_of_the_indices_and_reads_a_corner() -> None:
    check(_gather(X, array([[2]], "int32"), 1), array([[12]], "float32"))


def test_gather_out_of_range_and_negative_is_0() -> None:
    x = array([1, 2, 3, 4], "float32")
    check(_gather(x, array([0, -1, 4, 3, -(2**31), 2**31 - 1], "int32"), 0), array([1, 0, 0, 4, 0, 0], "float32"))
    check(_gather(x, array([2**63, 2**64 - 1, 1], "uint64"), 0), array([0, 0, 2], "float32"))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_any_integer_indexes(dtype: str) -> None:
    check(_gather(array([5, 6, 7], "float32"), array([2, 0, 100], dtype), 0), array([7, 5, 0], "float32"))


def test_gather_from_an_empty_axis_is_0() -> None:
    check(_gather(np.zeros((2, 0), np.float32), array([[0], [1]], "int32"), 1), array([[0], [0]], "float32"))
    check(_gather(X, np.zeros((2, 0), np.int32), 1), np.zeros((2, 0), np.float32))


def _scatter(
    indices: Array, updates: Array, axis: int, shape: list[int], reduction: str = "none", init: Array | None = None
) -> Array:
    node = {
        "node": "scatter",
        "indices_var": 0,
        "updates_var": 1,
        "axis": axis,
        "shape": shape,
        "reduction": reduction,
        "dtype": str(updates.dtype),
    }
    return (
        run_node(node, indices, updates) if init is None else run_node({**node, "init_var": 2}, indices, updates, init)
    )


def test_the_last_update_of_a_place_wins_and_outside_is_dropped() -> None:
    indices, updates = array([1, 1, 2, 9, -1], "int32"), array([10, 20, 30, 40, 50], "float32")
    check(_scatter(indices, updates, 0, [4]), array([0, 20, 30, 0], "float32"))


def test_scatter_along_the_first_axis_goes_row_by_row() -> None:
    indices, updates = array([[0, 1], [0, 0]], "int64"), array([[1, 2], [3, 4]], "float32")
    check(_scatter(indices, updates, 0, [2, 3]), array([[3, 4, 0], [0, 2, 0]], "float32"))


def test_scatter_starts_from_zeros() -> None:
    check(_scatter(np.zeros((0, 2), np.int32), np.zeros((0, 2), np.float32), 0, [1, 2]), array([[0, 0]], "float32"))


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("none", [7, 4, 3]),
        ("add", [7, 5 + 1 + 4, 2 + 3]),
        ("mul", [7, 5 * 1 * 4, 2 * 3]),
        ("min", [7, 1, 2]),
        ("max", [7, 5, 3]),
    ],
)
def test_updates_combine_with_the_initial_values_and_with_each_other(reduction: str, expected: list[float]) -> None:
    indices, updates = array([1, -1, 2, 1, 3], "int32"), array([1, 9, 3, 4, 9], "float32")
    init = array([7, 5, 2], "float32")
    check(_scatter(indices, updates, 0, [3], reduction, init), array(expected, "float32"))


def test_a_float_sum_is_rounded_at_each_update_in_order() -> None:
    indices, updates = array([0, 0, 0], "int32"), array([1, 1e8, -1e8], "float32")
    check(_scatter(indices, updates, 0, [1], "add"), array([0], "float32"))
    check(_scatter(indices, updates[::-1].copy(), 0, [1], "add"), array([1], "float32"))


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 11), ("bfloat16", 8)])
def test_a_sum_of_16_bit_floats_is_rounded_once(dtype: str, bits: int) -> None:
    large, one = array([2**bits], dtype), array([1, 1], dtype)
    check(_scatter(array([0, 0], "int32"), one, 0, [1], "add", large), array([2**bits + 2], dtype))


def test_places_without_updates_keep_their_bits() -> None:
    init = np.array([-0.0, np.nan, np.inf], np.float32)
    for reduction in ("none", "add", "mul", "min", "max"):
        found = _scatter(array([5], "int32"), array([1], "float32"), 0, [3], reduction, init)
        np.testing.assert_array_equal(found.view(np.uint32), init.view(np.uint32))


def test_zeros_and_nan_combine_as_by_binops() -> None:
    indices, init = array([0, 1, 2], "int32"), np.array([-0.0, 0.0, 1.0], np.float32)
    updates = np.array([0.0, -0.0, np.nan], np.float32)
    for reduction, signs in (("min", [True, True]), ("max", [False, False]), ("add", [False, False])):
        found = _scatter(indices, updates, 0, [3], reduction, init)
        assert np.signbit(found[:2]).tolist() == signs
        assert np.isnan(found[2])


def test_integers_wrap_and_bools_are_or_and_and() -> None:
    indices = array([0, 0], "int32")
    check(_scatter(indices, array([100, 100], "int8"), 0, [1], "add"), array([-56], "int8"))
    one = array([1, 0], "bool")
    check(_scatter(indices, one, 0, [1], "add"), array([1], "bool"))
    check(_scatter(indices, one, 0, [1], "mul", array([1], "bool")), array([0], "bool"))


def _index(x: Array, indices: Array, gate: Array | None = None) -> Array:
    node = {"node": "index", "in_var": 0, "idx_var": 1, "valid_var": None if gate is None else 2, "dtype": "float32"}
    return run_node(node, x, indices, *([] if gate is None else [gate]))


def test_index_reads_flat_elements_in_the_shape_of_the_indices() -> None:
    check(_index(X, array([[5, 0], [3, 2]], "int32")), array([[22, 10], [20, 12]], "float32"))
    check(_index(X, array(4, "uint8")), array(21, "float32"))


def test_index_is_0_outside_and_under_a_false_gate() -> None:
    indices = array([0, 6, -1, 1, 2], "int64")
    check(_index(X, indices), array([10, 0, 0, 11, 12], "float32"))
    check(_index(X, indices, array([1, 1, 1, 0, 1], "bool")), array([10, 0, 0, 0, 12], "float32"))
    check(_index(X, indices, array([2, 1, 1, 0, 255], "uint8")), array([10, 0, 0, 0, 12], "float32"))


def _gep(x: Array, indices: list[int]) -> Array:
    return run_node({"node": "gep", "in_var": 0, "indices": indices, "dtype": "float32"}, x)


def test_gep_selects_lanes_and_a_single_one_drops_the_axis() -> None:
    check(_gep(X, [2, 0, 2]), array([[12, 10, 12], [22, 20, 22]], "float32"))
    check(_gep(X, [1]), array([11, 21], "float32"))
    check(_gep(array([5, 6], "float32"), [0]), array(5, "float32"))


def test_vectorize_stacks_on_a_new_last_axis() -> None:
    node = {"node": "vectorize", "in_vars": [0, 1], "dtype": "float32"}
    check(run_node(node, array(1, "float32"), array(2, "float32")), array([1, 2], "float32"))
