from typing import Any

import numpy as np
import pytest

from tensorkiln import reference
from tensorkiln.errors import CallInputError
from tests.reference.one_node import Array, array, check, graph_of, placeholder, run_node

X = array([10, 11, 12, 13, 14, 15], "int32")


def _spec(shape: list[Any], strides: list[Any], offset: Any = 0, mask: Any = None) -> dict[str, Any]:
    return {"shape": shape, "strides": strides, "offset": offset, "mask": mask}


def _view(*views: dict[str, Any], x: Array = X, node: str = "view", dtype: str = "int32", **call: Any) -> Array:
    tracker = {"views": list(views), "shape": views[-1]["shape"]}
    return run_node({"node": node, "in_var": 0, "shape_tracker": tracker, "dtype": dtype}, x, **call)


def test_a_strided_view_transposes_and_skips() -> None:
    check(_view(_spec([3, 2], [1, 3])), array([[10, 13], [11, 14], [12, 15]], "int32"))
    check(_view(_spec([2], [2], 1)), array([11, 13], "int32"))


def test_a_stride_of_0_repeats_and_a_negative_one_reverses() -> None:
    check(_view(_spec([2, 3], [0, 1])), array([[10, 11, 12], [10, 11, 12]], "int32"))
    check(_view(_spec([6], [-1], 5)), X[::-1].copy())


def test_windows_overlap() -> None:
    check(_view(_spec([4, 3], [1, 1])), array([[10, 11, 12], [11, 12, 13], [12, 13, 14], [13, 14, 15]], "int32"))


def test_outside_the_mask_is_0_and_never_read() -> None:
    # The offset of a pad by 2 is -2: the first two addresses are before the buffer.
    check(_view(_spec([10], [1], -2, [[2, 8]])), array([0, 0, *X, 0, 0], "int32"))


def test_the_input_is_taken_as_flat_storage() -> None:
    check(_view(_spec([2, 2], [3, 1], 1), x=X.reshape(2, 3)), array([[11, 12], [14, 15]], "int32"))


def test_stacked_views_split_the_address_over_the_shape_below() -> None:
    # Below: X as [2, 3], transposed to [3, 2]. Above: that result, flat, in reverse.
    below, above = _spec([3, 2], [1, 3]), _spec([6], [-1], 5)
    check(_view(below, above), array([15, 12, 14, 11, 13, 10], "int32"))


def test_a_mask_below_holds_above() -> None:
    # Below: X padded with one zero on each side. Above: every other element of that.
    below, above = _spec([8], [1], -1, [[1, 7]]), _spec([4], [2])
    check(_view(below, above), array([0, 11, 13, 15], "int32"))


def test_masks_of_both_views_hold_together() -> None:
    below, above = _spec([8], [1], -1, [[1, 7]]), _spec([3, 4], [4, 1], -2, [[0, 2], [2, 4]])
    check(_view(below, above), array([[0, 0, 0, 10], [0, 0, 13, 14], [0, 0, 0, 0]], "int32"))


def test_an_empty_view_reads_nothing() -> None:
    check(_view(_spec([0, 3], [3, 1])), np.zeros((0, 3), np.int32))
    masked = _spec([4], [1], 0, [[2, 2]])
    check(_view(masked, x=np.zeros(0, np.int32)), np.zeros(4, np.int32))


def test_a_view_of_a_scalar_expands_it() -> None:
    check(_view(_spec([2, 2], [0, 0]), x=array(7, "int32")), array([[7, 7], [7, 7]], "int32"))


def test_views_of_bool_are_false_outside_the_mask() -> None:
    padded = _view(_spec([3], [1], -1, [[1, 3]]), x=array([True, False], "bool"), dtype="bool")
    check(padded, array([False, True, False], "bool"))


def test_shape_strides_offset_and_mask_take_symbols() -> None:
    end = {"op": "add", "args": ["n", 6]}
    view = _spec([{"op": "add", "args": ["n", 7]}], [1], {"op": "neg", "args": ["n"]}, [["n", end]])
    padded = _view(view, symbols={"n": (0, 4)}, values={"n": 2})
    check(padded, array([0, 0, *X, 0], "int32"))


def test_an_unmasked_address_outside_is_refused_at_the_call() -> None:
    tracker = {"views": [_spec(["n"], [1])], "shape": ["n"]}
    node = {"node": "view", "in_var": 0, "shape_tracker": tracker, "out_var": 100, "dtype": "int32"}
    graph = graph_of([placeholder(0, X), node], [0], [100], symbols={"n": (1, 9)})
    check(reference.evaluate(graph, X, n=6)[0], X)
    with pytest.raises(CallInputError) as caught:
        reference.evaluate(graph, X, n=7)
    assert caught.value.pointers[0].startswith("/nodes/1")


MASKED = _spec([2, 4], [4, 1], 0, [[0, 2], [1, 3]])


def test_valid_of_a_scalar_bool_is_the_mask() -> None:
    mask = array([[0, 1, 1, 0], [0, 1, 1, 0]], "bool")
    check(_view(MASKED, x=array(True, "bool"), node="valid", dtype="bool"), mask)
    check(_view(MASKED, x=array(False, "bool"), node="valid", dtype="bool"), mask)


def test_valid_of_a_tensor_keeps_what_the_mask_holds() -> None:
    x = np.arange(1, 9, dtype=np.int32).reshape(2, 4)
    check(_view(MASKED, x=x, node="valid"), array([[0, 2, 3, 0], [0, 6, 7, 0]], "int32"))


def test_valid_drops_nan_outside_the_mask() -> None:
    x = np.full((2, 4), np.nan, np.float32)
    x[:, 1:3] = 5
    kept = _view(MASKED, x=x, node="valid", dtype="float32")
    check(kept, array([[0, 5, 5, 0], [0, 5, 5, 0]], "float32"))


def test_valid_without_masks_holds_everywhere() -> None:
    check(_view(_spec([2], [1]), x=array(True, "bool"), node="valid", dtype="bool"), array([True, True], "bool"))
