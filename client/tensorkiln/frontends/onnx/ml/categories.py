"""Encoding of categories, by a table or one-hot. String categories are not supported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ..node import Node
from ..value import Absent, Host, Value


def _listed(node: Node, names: Sequence[tuple[str, Any]], what: str) -> Host:
    """The first of `names` that the node sets, else `<what>_tensor`. UnsupportedGraphError for strings, or for none."""
    for name, dtype in names:
        if node.is_set(name):
            return np.asarray(node.numbers(name) if dtype is np.float32 else node.integers(name), dtype)
    if node.is_set(tensor := f"{what}_tensor"):
        found = node.array(tensor)
        return (
            found.reshape(-1) if found.dtype.kind in "fiu" else node.fail(f"{what} that are strings are not supported")
        )
    return node.fail(f"{what} that are strings are not supported")


def _matches(node: Node, x: Tensor, keys: Host) -> Tensor:
    """Whether each element equals each key, along a new last axis; NaN equals NaN."""
    column = x.unsqueeze(-1)
    is_same = build.equal(column, node.parameter(keys))
    if not x.dtype.is_float or not np.isnan(keys).any():
        return is_same
    return is_same | (build.is_nan(column) & node.parameter(np.isnan(keys)))


def label_encoder(node: Node) -> Value | Sequence[Value | Absent]:
    """Map keys to values, with a default for other elements."""
    x = node.tensor(0)
    if any(node.is_set(name) for name in ("values_strings", "classes_strings")):
        node.ignore(*node.attribute_names)
        return [Absent(f"{node.op} {node.name} gives strings, which graphs do not have")]
    node.ignore("default_string")
    keys = _listed(node, (("keys_int64s", np.int64), ("keys_floats", np.float32)), "keys")
    values = _listed(node, (("values_int64s", np.int64), ("values_floats", np.float32)), "values")
    if keys.size != values.size or not keys.size:
        node.invalid(f"{keys.size} keys do not fit {values.size} values")
    if keys.size != len(np.unique(keys)):
        node.fail("a key has two values")
    if node.opset < 4 and keys.dtype.kind == "f" and np.isnan(keys).any():
        node.fail(f"a key that is NaN is not one in version {node.opset}")
    fallback = _default(node, values.dtype)
    is_key = _matches(node, x, keys.astype(x.dtype.numpy))
    position = build.argmax(is_key.cast(DType.INT32), -1)
    return build.where(is_key.any(-1), build.take(node.parameter(values), position), node.parameter(fallback))


def _default(node: Node, dtype: np.dtype[Any]) -> Host:
    if node.is_set("default_tensor"):
        node.ignore("default_int64", "default_float")
        return node.array("default_tensor").reshape(()).astype(dtype)
    if dtype.kind == "f":
        node.ignore("default_int64")
        return np.asarray(node.number("default_float", -0.0), dtype)
    node.ignore("default_float")
    return np.asarray(node.integer("default_int64", -1), dtype)


def one_hot_encoder(node: Node) -> Value:
    """One column per category. Unknown elements give zeros, or NaN where ONNX requires an error."""
    x = node.tensor(0)
    if node.is_set("cats_strings"):
        node.fail("categories that are strings are not supported")
    categories = np.asarray(node.integers("cats_int64s"), np.int64)
    is_own = _matches(node, x.cast(DType.INT64), categories)
    hot = is_own.cast(DType.FLOAT32)
    if node.integer("zeros", 1):
        return hot
    return build.where(is_own.any(-1, keepdims=True), hot, float("nan"))


OPERATORS: dict[str, Callable[[Node], Value | Sequence[Value | Absent]]] = {
    "LabelEncoder": label_encoder,
    "OneHotEncoder": one_hot_encoder,
}
