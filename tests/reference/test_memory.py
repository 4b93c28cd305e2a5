from typing import Any

import numpy as np

from tensorkiln import reference
from tests.reference.one_node import Array, array, check, graph_of, placeholder


def _buffer(var: int, size: int, dtype: str = "float32") -> dict[str, Any]:
    return {"node": "buffer", "dtype": dtype, "size_in_elements": size, "device": "CPU", "out_var": var}


def _view(var: int, of: int, size: int, offset: int, dtype: str = "float32") -> dict[str, Any]:
    return {"node": "buffer_view", "buffer_var": of, "size": size, "offset": offset, "dtype": dtype, "out_var": var}


def _assign(var: int, target: int, *updates: tuple[int, list[int] | None], dtype: str = "float32") -> dict[str, Any]:
    triples = [[source, target, places] for source, places in updates]
    return {"node": "assign", "target_var": target, "updates": triples, "out_var": var, "dtype": dtype}


def _add(var: int, a: int, b: int) -> dict[str, Any]:
    return {"node": "binop", "op": "add", "a_var": a, "b_var": b, "out_var": var, "dtype": "float32"}


X = array([1, 2, 3, 4], "float32")
Y = array([10, 20, 30, 40], "float32")


def _run(nodes: list[dict[str, Any]], outputs: list[int], *inputs: Array, **metadata: Any) -> tuple[Array, ...]:
    places = [placeholder(var, value) for var, value in enumerate(inputs)]
    return reference.evaluate(graph_of([*places, *nodes], range(len(inputs)), outputs, **metadata), *inputs)


def test_a_never_written_buffer_is_zeros() -> None:
    check(_run([_buffer(5, 3)], [5])[0], array([0, 0, 0], "float32"))
    check(_run([_buffer(5, 0)], [5])[0], array([], "float32"))


def test_a_buffer_has_the_shape_of_its_metadata() -> None:
    (out,) = _run([_buffer(5, 6)], [5], metadata={5: ("float32", [2, 3])})
    check(out, np.zeros((2, 3), np.float32))


def test_a_buffer_may_be_an_input() -> None:
    graph = graph_of([_buffer(0, 4), _add(1, 0, 0)], [0], [1])
    check(reference.evaluate(graph, X)[0], array([2, 4, 6, 8], "float32"))


def test_a_buffer_declared_for_a_result_holds_it() -> None:
    check(_run([_buffer(5, 4), _add(5, 0, 1)], [5], X, Y)[0], array([11, 22, 33, 44], "float32"))


def test_the_offset_of_a_view_counts_elements_of_the_buffer() -> None:
    floats = array([1, 2, 0x80], "float32")
    nodes = [_buffer(5, 3), _assign(6, 5, (0, None)), _view(7, 5, 2, 1), _view(8, 5, 4, 1, "uint8")]
    last_two, raw = _run(nodes, [7, 8], floats)
    check(last_two, array([2, 128], "float32"))
    check(raw, array([0, 0, 0, 64], "uint8"))


def test_a_byte_that_is_not_0_is_true_in_a_view_of_bool() -> None:
    nodes = [_buffer(5, 3, "uint8"), _assign(6, 5, (0, None), dtype="uint8"), _view(7, 5, 3, 0, "bool")]
    check(_run(nodes, [7], array([0, 2, 255], "uint8"))[0], array([False, True, True], "bool"))


def test_assign_replaces_the_whole_and_later_reads_see_it() -> None:
    nodes = [_add(5, 0, 0), _assign(6, 0, (1, None)), _add(7, 0, 0)]
    before, value, after, target = _run(nodes, [5, 6, 7, 0], X, Y)
    check(before, array([2, 4, 6, 8], "float32"))
    check(value, Y)
    check(after, array([20, 40, 60, 80], "float32"))
    check(target, Y)


def test_the_out_var_of_an_assign_is_what_the_target_held_then() -> None:
    nodes = [_assign(6, 0, (1, None)), _add(7, 6, 0), _assign(8, 0, (7, None)), _add(9, 6, 8)]
    first, second, both, target = _run(nodes, [6, 8, 9, 0], X, Y)
    check(first, Y)
    check(second, Y * 2)
    check(both, Y * 3)
    check(target, Y * 2)


def test_assign_never_modifies_the_caller() -> None:
    mine = X.copy()
    _run([_assign(6, 0, (1, None))], [0], mine, Y)
    check(mine, X)


def test_updates_apply_in_order_to_flat_ranges() -> None:
    three, two = array([7, 8, 9], "float32"), array([-1, -2], "float32")
    nodes = [_assign(6, 0, (1, [0, 3]), (2, [2, 4]))]
    check(_run(nodes, [6], X, three, two)[0], array([7, 8, -1, -2], "float32"))


def test_a_range_is_of_flat_elements() -> None:
    square = array([[1, 2], [3, 4]], "float32")
    check(_run([_assign(6, 0, (1, [1, 3]))], [0], square, array([8, 9], "float32"))[0],
          array([[1, 8], [9, 4]], "float32"))  # fmt: skip


def test_a_view_made_earlier_sees_what_is_assigned_later() -> None:
    nodes = [_buffer(5, 4), _view(6, 5, 2, 1), _assign(7, 5, (0, None)), _add(8, 6, 6)]
    view, doubled = _run(nodes, [6, 8], X)
    check(view, array([2, 3], "float32"))
    check(doubled, array([4, 6], "float32"))


def test_a_value_computed_earlier_does_not_change() -> None:
    shape = {"node": "reshape", "in_var": 5, "new_shape": [2, 2], "out_var": 6, "dtype": "float32"}
    hint = {"node": "contiguous", "in_var": 5, "out_var": 8, "dtype": "float32"}
    reshaped, same, target = _run([_buffer(5, 4), shape, hint, _assign(7, 5, (0, None))], [6, 8, 5], X)
    check(reshaped, np.zeros((2, 2), np.float32))
    check(same, np.zeros(4, np.float32))
    check(target, X)


def test_an_assign_that_nobody_reads_still_happens() -> None:
    check(_run([_assign(6, 0, (1, None))], [0], X, Y)[0], Y)


def test_a_source_may_overlap_its_target() -> None:
    nodes = [_buffer(5, 4), _assign(6, 5, (0, None)), _view(7, 5, 3, 0), _assign(8, 5, (7, [1, 4]))]
    check(_run(nodes, [5], X)[0], array([1, 1, 2, 3], "float32"))


def test_outputs_are_fresh_and_independent() -> None:
    graph = graph_of([placeholder(0, X)], [0], [0, 0])
    mine = X.copy()
    first, second = reference.evaluate(graph, mine)
    first[0] = 99
    check(second, X)
    check(mine, X)


def test_a_copy_is_the_same_values() -> None:
    for clone in (False, True):
        node = {"node": "copy", "in_var": 0, "target_device": "CPU", "clone": clone, "out_var": 5, "dtype": "float32"}
        check(_run([node], [5], X)[0], X)
