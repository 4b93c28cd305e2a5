"""The custom operation `sort`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..dtypes import DType
from ..types import TensorType
from .registry import Array, Attribute, CustomOp, CustomOpError, Value


def _integer(attributes: Mapping[str, Value], name: str) -> int:
    value = attributes[name]
    if not isinstance(value, int):
        raise CustomOpError(f"sort: {name} is an integer")
    return value


def infer_type(inputs: Sequence[TensorType], attributes: Mapping[str, Value]) -> TensorType:
    """One input of any dtype but unit; the result has its type."""
    if len(inputs) != 1:
        raise CustomOpError(f"sort takes one input, here {len(inputs)}")
    (source,) = inputs
    if source.dtype is DType.UNIT:
        raise CustomOpError("sort does not take unit")
    axis = _integer(attributes, "axis")
    if not -source.rank <= axis < source.rank:
        raise CustomOpError(f"sort: axis {axis} is outside of a value of rank {source.rank}")
    if _integer(attributes, "descending") not in (0, 1):
        raise CustomOpError("sort: descending is 0 or 1")
    return source


def compute(inputs: Sequence[Array], attributes: Mapping[str, Value]) -> Array:
    """Sorts along `axis`. Equal elements (-0 and +0 too) keep their order; NaN comes last in either direction."""
    (array,) = inputs
    axis = _integer(attributes, "axis")
    kind = array.dtype.kind
    # Half-precision types sort by their exact float32 value: NumPy does not order NaN of extension types.
    keys: Array = array if kind in "iub" or array.dtype.itemsize > 2 else array.astype(np.float32)
    if _integer(attributes, "descending"):
        keys = np.invert(keys) if kind in "iub" else np.negative(keys)
    return np.take_along_axis(array, np.argsort(keys, axis=axis, kind="stable"), axis)


SORT = CustomOp(
    name="sort",
    meaning="The elements along an axis in order; stable, NaN last.",
    attributes={
        "axis": Attribute("int", "the axis to sort along; may count from the end"),
        "descending": Attribute("int", "1 for the greatest first", default=0),
    },
    infer_type=infer_type,
    compute=compute,
)
