"""`scatter_reduce` in all its ways, and gradients of tables, against what torch documents, element by element."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor
from tensorkiln.dtypes import DType
from tensorkiln.frontends.torch import OPERATORS
from tensorkiln.frontends.torch.call import Call, Value
from tensorkiln.frontends.torch.exported import Operation, TensorType
from tensorkiln.reference import evaluate

Array = np.ndarray[Any, Any]
COMBINED = {"sum": sum, "prod": math.prod, "amax": max, "amin": min, "mean": lambda values: sum(values) / len(values)}


def run(target: str, arrays: dict[str, Array], **arguments: Value) -> Array:
    """One operator on inputs; the result is like the first."""
    builder = Builder("one")
    inputs: dict[str, Value] = {
        name: builder.input(DType.from_numpy(array.dtype), array.shape) for name, array in arrays.items()
    }
    first = next(iter(arrays.values()))
    kind = TensorType(DType.from_numpy(first.dtype), first.shape, str(first.dtype))

    def none(*_: object) -> NoReturn:
        raise AssertionError("it has no table")

    call = Call(Operation("node", target, {}, ("node",)), builder, {**inputs, **arguments}, (kind,), none, none)
    result = OPERATORS[target](call)
    assert isinstance(result, Tensor)
    builder.output(result)
    return evaluate(builder.graph(), *arrays.values())[0]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("includes_self", [True, False])
@pytest.mark.parametrize("how", COMBINED)
def test_updates_are_combined_with_and_without_the_element(how: str, includes_self: bool, dtype: str) -> None:
    rng = np.random.default_rng(3)
    x, source = (rng.integers(1, 9, size).astype(dtype) for size in ((4, 5), (6, 3)))
    index = rng.integers(0, 3, (6, 3))
    found = run(
        "aten.scatter_reduce.two",
        {"self": x, "index": index, "src": source},
        dim=0,
        reduce=how,
        include_self=includes_self,
    )
    expected = x.copy()
    for place in np.ndindex(x.shape):
        given = [source[row, place[1]] for row in range(6) if place[1] < 3 and index[row, place[1]] == place[0]]
        if given:
            values = [float(value) for value in ([x[place], *given] if includes_self else given)]
            combined = COMBINED[how](values)
            expected[place] = math.floor(combined) if dtype == "int32" else combined
    np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype == "float16" else 1e-6)


def test_the_gradient_of_a_table_sums_the_rows_of_each_index_but_not_those_of_the_padding() -> None:
    gradient = np.array([[1, 2], [np.inf, 4], [5, 6], [np.nan, 8]], np.float32)
    found = run(
        "aten.embedding_dense_backward.default",
        {"grad_output": gradient, "indices": np.array([2, 0, 2, 1])},
        num_weights=3,
        padding_idx=1,
        scale_grad_by_freq=False,
    )
    np.testing.assert_array_equal(found, np.array([[np.inf, 4], [0, 0], [6, 8]], np.float32))


def test_the_gradient_of_a_large_table_is_a_graph_of_few_elements() -> None:
    gradient, indices = np.zeros((512, 1024), np.float32), np.zeros(512, np.int64)
    found = run(
        "aten.embedding_dense_backward.default",
        {"grad_output": gradient, "indices": indices},
        num_weights=50_000,
        padding_idx=-1,
        scale_grad_by_freq=False,
    )
    assert found.shape == (50_000, 1024)
