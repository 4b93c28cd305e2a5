"""Selection, concatenation and naming of features."""

from __future__ import annotations

from collections.abc import Callable

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ....expr import product
from ..node import Node
from ..value import Value
from .scores import numbers


def array_feature_extractor(node: Node) -> Value:
    """Elements of the last axis by position; a vector counts as one row."""
    x, indices = node.tensor(0), node.tensor(1)
    flat = indices.reshape([product(indices.shape)])
    found = build.take(x, flat, x.rank - 1)
    return found.unsqueeze(0) if x.rank == 1 else found


def feature_vectorizer(node: Node) -> Value:
    """Concatenate the inputs, each truncated or zero-padded to its size."""
    sizes = node.integers("inputdimensions")
    if len(sizes) != len(node.inputs):
        node.invalid(f"{len(sizes)} inputdimensions do not fit {len(node.inputs)} inputs")
    return build.cat([_sized(numbers(node, place), size) for place, size in enumerate(sizes)], 1).cast(DType.FLOAT32)


def _sized(x: Tensor, size: int) -> Tensor:
    if x.rank != 2:
        raise ValueError(f"features are the columns of a matrix, not of rank {x.rank}")
    own = x.shape[1]
    if not isinstance(own, int):
        raise ValueError(f"an input has {own} features, which depends on symbols")
    return build.pad(x, [(0, 0), (0, size - own)]) if own < size else x[:, :size]


def zip_map(node: Node) -> Value:
    """The unchanged scores, one column per label, in place of ONNX's list of maps."""
    node.ignore("classlabels_int64s", "classlabels_strings")
    return node.value(0)


OPERATORS: dict[str, Callable[[Node], Value]] = {
    "ArrayFeatureExtractor": array_feature_extractor,
    "FeatureVectorizer": feature_vectorizer,
    "ZipMap": zip_map,
}
