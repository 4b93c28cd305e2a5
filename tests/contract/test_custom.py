"""The registry of custom operations and its one operation."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from tensorkiln.custom import Attribute, CustomOp, CustomOpError, lookup, register, registered
from tensorkiln.custom.registry import Array, Value
from tensorkiln.dtypes import DType
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.nodes import CustomAttr
from tensorkiln.types import TensorType

NAN, INF = float("nan"), float("inf")


def attributes(axis: int, descending: int | None = None) -> list[CustomAttr]:
    given = {"axis": axis} if descending is None else {"axis": axis, "descending": descending}
    return [CustomAttr(name=name, kind="int", value=value) for name, value in given.items()]


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype is not DType.UNIT])
@pytest.mark.parametrize("descending", [0, 1])
def test_sort_orders_every_dtype(dtype: DType, descending: int) -> None:
    values = [0, 1, 1, 0] if dtype.is_bool else [3, 0, int(min(dtype.max, 100)), 1]
    array = np.array(values).astype(dtype.numpy)
    (result,) = [lookup("sort").evaluate([array], attributes(0, descending))]
    assert result.dtype == array.dtype
    assert result.astype(np.float64).tolist() == sorted(array.astype(np.float64).tolist(), reverse=bool(descending))


@pytest.mark.parametrize("dtype", [DType.INT64, DType.UINT64, DType.INT8])
def test_sort_orders_the_ends_of_integers(dtype: DType) -> None:
    array = np.array([dtype.max, dtype.min, dtype.max - 1], dtype.numpy)
    assert lookup("sort").evaluate([array], attributes(0, 1)).tolist() == [dtype.max, dtype.max - 1, dtype.min]


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype.is_float])
def test_nan_is_last_in_both_directions_and_equal_zeros_keep_their_order(dtype: DType) -> None:
    array = np.array([NAN, 0.0, -INF, -0.0, INF, NAN], np.float64).astype(dtype.numpy)
    for descending, expected in ((0, [-INF, 0.0, -0.0, INF, NAN, NAN]), (1, [INF, 0.0, -0.0, -INF, NAN, NAN])):
        result = lookup("sort").evaluate([array], attributes(0, descending)).astype(np.float64)
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result[:4]), np.signbit(expected[:4]))


def test_sort_follows_its_axis_and_leaves_its_input() -> None:
    array = np.array([[3, 1], [2, 5], [1, 0]], np.int32)
    kept = array.copy()
    assert lookup("sort").evaluate([array], attributes(0)).tolist() == [[1, 0], [2, 1], [3, 5]]
    assert lookup("sort").evaluate([array], attributes(-1)).tolist() == [[1, 3], [2, 5], [0, 1]]
    assert lookup("sort").evaluate([array[:0]], attributes(0)).shape == (0, 2)
    np.testing.assert_array_equal(array, kept)


@pytest.mark.parametrize(
    ("inputs", "given"),
    [
        ([], attributes(0)),
        ([TensorType(DType.INT8, (3,))] * 2, attributes(0)),
        ([TensorType(DType.INT8, ())], attributes(0)),
        ([TensorType(DType.INT8, (3,))], attributes(1)),
        ([TensorType(DType.INT8, (3,))], attributes(0, 2)),
        ([TensorType(DType.UNIT, (3,))], attributes(0)),
        ([TensorType(DType.INT8, (3,))], []),
        ([TensorType(DType.INT8, (3,))], attributes(0) + attributes(0)),
        ([TensorType(DType.INT8, (3,))], [*attributes(0), CustomAttr(name="key", kind="int", value=1)]),
        ([TensorType(DType.INT8, (3,))], [CustomAttr(name="axis", kind="shape", value=(0,))]),
    ],
)
def test_sort_refuses_what_it_does_not_take(inputs: Sequence[TensorType], given: list[CustomAttr]) -> None:
    with pytest.raises(CustomOpError):
        lookup("sort").infer(inputs, given)


def test_the_registry_documents_its_operations_and_knows_no_other() -> None:
    for op in registered().values():
        assert op.meaning
        assert all(attribute.meaning for attribute in op.attributes.values())
    with pytest.raises(UnsupportedGraphError, match="sort"):
        lookup("median")


def test_a_name_is_registered_once() -> None:
    def infer(inputs: Sequence[TensorType], given: Mapping[str, Value]) -> TensorType:
        return inputs[0]

    def compute(inputs: Sequence[Array], given: Mapping[str, Value]) -> Array:
        return inputs[0]

    with pytest.raises(ValueError, match="already"):
        register(CustomOp("sort", "again", {"axis": Attribute("int", "an axis")}, infer, compute))


@pytest.mark.parametrize(("kind", "value"), [("int", 1.5), ("float", 1), ("string", 1), ("shape", "n"), ("int", True)])
def test_an_attribute_has_a_value_of_its_kind(kind: str, value: object) -> None:
    with pytest.raises(ValueError, match="value"):
        CustomAttr.model_validate({"name": "a", "kind": kind, "value": value})
