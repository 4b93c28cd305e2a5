"""A caller's bool may be any byte that is not 0; every bool that a program returns is 0 or 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import compiled, emulated
from tests.dialect.wire import assign, buffer_view, graph_of, placeholder

Run = Callable[..., tuple[Any, ...]]
RUNS = pytest.mark.parametrize("run", [compiled.run, emulated.run], ids=["cpu", "gpu"])
BYTES = np.array([[0, 1, 2, 3], [255, 128, 0, 64], [7, 0, 1, 254]], np.uint8)


def node(kind: str, var: int = 1, **fields: Any) -> Mapping[str, Any]:
    return {"node": kind, "out_var": var, "dtype": "bool", **fields}


def view(shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Mapping[str, Any]:
    layout = {"shape": shape, "strides": strides, "offset": offset, "mask": None}
    return node("view", in_var=0, shape_tracker={"views": [layout], "shape": shape})


SORT: dict[str, Any] = {"op_name": "sort", "attributes": [{"name": "axis", "kind": "int", "value": 1}]}
KINDS: dict[str, list[Mapping[str, Any]]] = {
    "the input": [node("detach", 9, in_var=0)],
    "detach": [node("detach", in_var=0)],
    "noop": [node("noop", in_var=0)],
    "contiguous": [node("contiguous", in_var=0)],
    "copy": [node("copy", in_var=0, target_device="CPU", clone=True)],
    "custom": [node("custom", in_vars=[0], **SORT)],
    "reshape": [node("reshape", in_var=0, new_shape=[12])],
    "leading rows": [node("shrink", in_var=0, limits=[[1, 3], [0, 4]])],
    "permute": [node("permute", in_var=0, axes_permutation=[1, 0])],
    "view": [view([2, 4], [4, 1], 4)],
    "buffer_view": [buffer_view(1, 0, 4, 8, "bool")],
    "reduce over no axes": [node("reduce_axis", in_var=0, reduce_op_kind="sum", axes=[])],
    "cat": [node("cat", in_vars=[0, 0], axis=0)],
    "assign": [node("detach", 3, in_var=0), assign(1, 0, (2, [0, 4]), dtype="bool")],
    "scatter": [
        {"node": "vconst", "values": [7], "out_var": 4, "dtype": "int32"},
        node("reshape", 5, dtype="int32", in_var=4, new_shape=[1, 1]),
        node("shrink", 6, in_var=0, limits=[[0, 1], [0, 1]]),
        node("scatter", indices_var=5, updates_var=6, init_var=0, axis=0, shape=[3, 4]),
    ],
    "scatter add": [
        {"node": "vconst", "values": [2], "out_var": 4, "dtype": "int32"},
        node("reshape", 5, dtype="int32", in_var=4, new_shape=[1, 1]),
        node("shrink", 6, in_var=0, limits=[[0, 1], [0, 1]]),
        node("scatter", indices_var=5, updates_var=6, init_var=0, axis=0, shape=[3, 4], reduction="add"),
    ],
    "cast": [node("cast", in_var=0, target_dtype="bool")],
    "bitcast": [node("bitcast", in_var=0, target_dtype="bool")],
    "multi": [node("multi", device_vars=[0, 0], axis=None, real_mask=[True, True])],
}


def graph(name: str, rows: int | str, outputs: Sequence[int]) -> Graph:
    more = [placeholder(2, [4], "bool")] if name == "assign" else []
    bounds = {} if isinstance(rows, int) else {rows: (3, 9)}
    return graph_of([placeholder(0, [rows, 4], "bool"), *more, *KINDS[name]], outputs, bounds=bounds)


def agree(run: Run, tested: Graph, symbols: Mapping[str, int]) -> None:
    arrays = [BYTES.view(np.bool_)]
    if len(tested.input_vars) > 1:
        arrays.append(BYTES[1].view(np.bool_))
    results = run(tested, *arrays, **symbols)
    for result, expected in zip(results, evaluate(tested, *arrays, **symbols), strict=True):
        assert result.dtype == np.bool_
        np.testing.assert_array_equal(result.view(np.uint8), expected.view(np.uint8), strict=True)
    assert [int(result.view(np.uint8).max()) for result in results] == [1] * len(results)
    assert arrays[0].view(np.uint8).max() == 255, "what the caller has stays as it is"


@RUNS
@pytest.mark.parametrize("name", KINDS)
def test_a_bool_is_returned_as_0_or_1(run: Run, name: str) -> None:
    result = {"the input": 0}.get(name, 1)
    agree(run, graph(name, 3, [result]), {})


def test_so_it_is_after_a_copy_to_another_device() -> None:
    copy = node("copy", in_var=0, target_device="CUDA:1", clone=True)
    agree(emulated.run, graph_of([placeholder(0, [3, 4], "bool"), copy], [1, 0]), {})


@RUNS
@pytest.mark.parametrize("name", ["the input", "contiguous", "copy", "custom", "reduce over no axes", "cat"])
def test_so_it_is_with_a_symbolic_size_and_returned_twice(run: Run, name: str) -> None:
    result = {"the input": 0}.get(name, 1)
    agree(run, graph(name, "n", [result, 0, result]), {"n": 3})
