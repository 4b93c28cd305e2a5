"""Scaling, normalization, thresholds, and replacement of missing features."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ..node import Node
from ..value import Value
from .scores import numbers


def _by_feature(node: Node, values: list[float] | list[int], x: Tensor, name: str) -> Tensor:
    """An attribute with one value for all features or one per feature."""
    if len(values) not in (1, x.shape[-1]):
        node.invalid(f"{len(values)} values of {name} do not fit {x.shape[-1]} features")
    return node.parameter(np.asarray(values, x.dtype.numpy))


def scaler(node: Node) -> Value:
    x = numbers(node)
    if node.is_set("offset"):
        x = x - _by_feature(node, node.numbers("offset"), x, "offset")
    if node.is_set("scale"):
        x = x * _by_feature(node, node.numbers("scale"), x, "scale")
    return x.cast(DType.FLOAT32)


def normalizer(node: Node) -> Value:
    """Divide each row by its norm unless that is 0. The norm `MAX` is the greatest element, not its magnitude."""
    x = numbers(node)
    norm = _NORMS[node.choice("norm", _NORMS, "MAX")](x)
    return build.where(build.equal(norm, 0.0), x, x / norm).cast(DType.FLOAT32)


_NORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "L1": lambda x: build.absolute(x).sum([-1], keepdims=True),
    "L2": lambda x: build.sqrt((x * x).sum([-1], keepdims=True)),
    "MAX": lambda x: x.max([-1], keepdims=True),
}


def binarizer(node: Node) -> Value:
    """1 above the threshold, else 0."""
    x = node.tensor(0)
    threshold = node.number("threshold", 0.0)
    if not x.dtype.is_float:
        # For integers, x > threshold is x > floor(threshold).
        bound = math.floor(threshold)
        if not x.dtype.min <= bound <= x.dtype.max:
            node.fail(f"the threshold {threshold} is not a value of {x.dtype}")
        return (x > bound).cast(x.dtype)
    return (x > threshold).cast(x.dtype)


def imputer(node: Node) -> Value:
    """Replace missing elements by the value of their feature. An attribute has the number, or NaN, that marks them."""
    x = node.tensor(0)
    if x.dtype.is_float:
        node.ignore("imputed_value_int64s", "replaced_value_int64")
        values = _by_feature(node, node.numbers("imputed_value_floats"), x, "imputed_value_floats")
        missing = node.number("replaced_value_float", 0.0)
        is_missing = build.is_nan(x) if math.isnan(missing) else build.equal(x, missing)
    else:
        node.ignore("imputed_value_floats", "replaced_value_float")
        values = _by_feature(node, node.integers("imputed_value_int64s"), x, "imputed_value_int64s")
        is_missing = build.equal(x, node.integer("replaced_value_int64", 0))
    return build.where(is_missing, values, x)


OPERATORS: dict[str, Callable[[Node], Value]] = {
    "Binarizer": binarizer,
    "Imputer": imputer,
    "Normalizer": normalizer,
    "Scaler": scaler,
}
