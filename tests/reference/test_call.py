import warnings
from typing import Any

import numpy as np
import pytest

from tensorkiln import reference
from tensorkiln.errors import CallBoundsError, CallInputError
from tensorkiln.graph import Graph
from tests.reference.one_node import array, check, graph_of, placeholder

X = array([1, 2, 3], "float32")


def _doubling(symbols: dict[str, tuple[int, int]] | None = None) -> Graph:
    add = {"node": "binop", "op": "add", "a_var": 0, "b_var": 0, "out_var": 1, "dtype": "float32"}
    return graph_of([placeholder(0, X, ["n"]), add], [0], [1], symbols=symbols or {"n": (1, 5)})


def test_a_call_that_fits_is_evaluated() -> None:
    check(reference.evaluate(_doubling(), X, n=3)[0], array([2, 4, 6], "float32"))
    check(reference.evaluate(_doubling(), X, n=np.int64(3))[0], array([2, 4, 6], "float32"))


@pytest.mark.parametrize("symbols", [{}, {"n": 3, "k": 1}, {"n": 0}, {"n": 6}, {"n": 3.0}, {"n": True}, {"n": "3"}])
def test_a_symbol_that_is_missing_unknown_or_out_of_bounds_is_refused(symbols: dict[str, int]) -> None:
    with pytest.raises(CallBoundsError):
        reference.evaluate(_doubling(), X, **symbols)


@pytest.mark.parametrize("value", [True, np.bool_(True), np.array(1), np.array([1]), np.timedelta64(1), 1.0, None])
def test_a_symbol_that_is_no_integer_is_refused(value: Any) -> None:
    with pytest.raises(CallBoundsError, match="symbol n is an integer, not"):
        reference.evaluate(_doubling(), X[:1], n=value)


def test_an_unused_symbol_is_checked_too() -> None:
    graph = _doubling({"n": (1, 5), "unused": (1, 2)})
    reference.evaluate(graph, X, n=3, unused=2)
    for symbols in ({"n": 3}, {"n": 3, "unused": 3}):
        with pytest.raises(CallBoundsError, match="unused"):
            reference.evaluate(graph, X, **symbols)


def test_symbols_are_checked_before_arrays() -> None:
    with pytest.raises(CallBoundsError):
        reference.evaluate(_doubling(), n=9)


def test_the_number_of_arrays_must_fit() -> None:
    with pytest.raises(CallInputError, match="1 inputs, got 0"):
        reference.evaluate(_doubling(), n=3)
    with pytest.raises(CallInputError, match="1 inputs, got 2"):
        reference.evaluate(_doubling(), X, X, n=3)


@pytest.mark.parametrize("given", [X.astype(np.float64), X.astype(">f4"), [1.0, 2.0, 3.0], np.array(["a", "b", "c"])])
def test_another_dtype_is_refused(given: object) -> None:
    with pytest.raises(CallInputError, match="input 0 is float32") as caught:
        reference.evaluate(_doubling(), given, n=3)
    assert caught.value.pointers == ("/input_vars/0",)


@pytest.mark.parametrize("given", [X[:2], X.reshape(3, 1), np.float32(1)])
def test_another_shape_is_refused(given: object) -> None:
    with pytest.raises(CallInputError, match=r"input 0 has shape \[3\]"):
        reference.evaluate(_doubling(), given, n=3)


def test_a_strided_array_is_taken_as_it_is() -> None:
    backing = np.arange(6, dtype=np.float32)
    check(reference.evaluate(_doubling(), backing[::2], n=3)[0], array([0, 4, 8], "float32"))


def test_shapes_that_only_some_symbols_make_equal_are_checked_at_the_call() -> None:
    add = {"node": "binop", "op": "add", "a_var": 0, "b_var": 1, "out_var": 2, "dtype": "float32"}
    nodes = [placeholder(0, X, ["n"]), placeholder(1, X, ["m"]), add]
    graph = graph_of(nodes, [0, 1], [2], symbols={"n": (1, 5), "m": (1, 5)})
    check(reference.evaluate(graph, X, X, n=3, m=3)[0], X + X)
    with pytest.raises(CallInputError) as caught:
        reference.evaluate(graph, X, X[:2], n=3, m=2)
    assert caught.value.pointers[0].startswith("/nodes/2")


def test_a_symbol_may_have_the_name_of_a_parameter() -> None:
    graph = graph_of([placeholder(0, X, ["graph"])], [0], [0], symbols={"graph": (1, 5)})
    check(reference.evaluate(graph, X, graph=3)[0], X)


def test_no_numpy_warning_leaks() -> None:
    nodes = [placeholder(0, X)]
    for var, op in enumerate(("log2", "sqrt", "recip", "exp2", "sin"), start=1):
        nodes.append({"node": "unary", "op": op, "in_var": 0, "out_var": var, "dtype": "float32"})
    nodes.append({"node": "cast", "in_var": 0, "target_dtype": "int8", "out_var": 6, "dtype": "int8"})
    nodes.append({"node": "cast", "in_var": 0, "target_dtype": "bfloat16", "out_var": 7, "dtype": "bfloat16"})
    edges = array([-1, 0, float("inf"), float("nan"), 3e38], "float32")
    nodes[0] = placeholder(0, edges)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reference.evaluate(graph_of(nodes, [0], list(range(1, 8))), edges)
