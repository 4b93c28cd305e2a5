import numpy as np

from tests.reference.one_node import Array, array, check, run_node

X = np.arange(6, dtype=np.int32).reshape(2, 3)


def _move(node: str, x: Array = X, **fields: object) -> Array:
    return run_node({"node": node, "in_var": 0, "dtype": "int32", **fields}, x)


def test_reshape_keeps_row_major_order() -> None:
    check(_move("reshape", new_shape=[3, 2]), array([[0, 1], [2, 3], [4, 5]], "int32"))
    check(_move("reshape", x=array([7], "int32"), new_shape=[]), array(7, "int32"))
    check(_move("reshape", x=np.zeros((0, 3), np.int32), new_shape=[5, 0]), np.zeros((5, 0), np.int32))


def test_axis_i_of_a_permutation_is_axis_p_i_of_the_input() -> None:
    x = np.arange(6, dtype=np.int32).reshape(1, 2, 3)
    check(_move("permute", x=x, axes_permutation=[2, 0, 1]), array([[[0, 3]], [[1, 4]], [[2, 5]]], "int32"))
    check(_move("permute", x=array(3, "int32"), axes_permutation=[]), array(3, "int32"))


def test_expand_repeats_axes_of_size_1() -> None:
    x = array([[1], [2]], "int32")
    check(_move("expand", x=x, new_target_shape=[2, 3]), array([[1, 1, 1], [2, 2, 2]], "int32"))
    check(_move("expand", x=x, new_target_shape=[2, 0]), np.zeros((2, 0), np.int32))


def test_pad_puts_zeros_around() -> None:
    check(_move("pad", pad_width=[[1, 0], [0, 2]]), array([[0] * 5, [0, 1, 2, 0, 0], [3, 4, 5, 0, 0]], "int32"))
    empty = np.zeros((0, 2), np.int32)
    check(_move("pad", x=empty, pad_width=[[1, 1], [0, 0]]), np.zeros((2, 2), np.int32))


def test_pad_of_bool_is_false() -> None:
    node = {"node": "pad", "in_var": 0, "dtype": "bool", "pad_width": [[1, 1]]}
    check(run_node(node, array([True], "bool")), array([False, True, False], "bool"))


def test_shrink_keeps_a_box() -> None:
    check(_move("shrink", limits=[[1, 2], [0, 2]]), array([[3, 4]], "int32"))
    check(_move("shrink", limits=[[1, 1], [0, 3]]), np.zeros((0, 3), np.int32))


def test_flip_reverses_axes() -> None:
    check(_move("flip", axes=[1]), array([[2, 1, 0], [5, 4, 3]], "int32"))
    check(_move("flip", axes=[1, 0]), array([[5, 4, 3], [2, 1, 0]], "int32"))
    check(_move("flip", axes=[]), X)


def test_cat_joins_along_an_axis_that_may_count_from_the_end() -> None:
    for axis in (1, -1):
        joined = run_node(
            {"node": "cat", "in_vars": [0, 1, 2], "axis": axis, "dtype": "int32"}, X, X[:, :0], X[:, 2:] * 10
        )
        check(joined, array([[0, 1, 2, 20], [3, 4, 5, 50]], "int32"))


def test_cat_of_one_is_the_same() -> None:
    check(run_node({"node": "cat", "in_vars": [0], "axis": 0, "dtype": "int32"}, X), X)


def test_pads_and_shrinks_take_expressions() -> None:
    node = {
        "node": "pad",
        "in_var": 0,
        "dtype": "int32",
        "pad_width": [["n", {"op": "sub", "args": [3, "n"]}]],
    }
    padded = run_node(node, array([1, 2], "int32"), symbols={"n": (0, 3)}, values={"n": 2})
    check(padded, array([0, 0, 1, 2, 0], "int32"))
