"""The embeddings at the start of BERT: words, positions and segments, summed and normalised."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ..node import Node
from ..value import Value


def embed_layer_normalization(node: Node) -> Sequence[Value]:
    """Also the number of ones in each row of the mask (zeros without one), and the sum of the embeddings."""
    node.ignore("mask_index_type")
    words = node.tensor(0)
    if words.rank != 2:
        node.invalid(f"word ids of rank {words.rank} are not of shape (batch, tokens)")
    count, positions = words.shape[1], node.tensor(3)
    if node.has(8):
        placed = build.take(positions, node.tensor(8))
    else:
        placed = build.shrink(positions, [(0, count), (0, positions.shape[1])])
    total = build.take(node.tensor(2), words) + placed
    if node.has(1):
        total = total + build.take(node.tensor(4), node.tensor(1))
    normal = build.layer_norm(total, -1, node.tensor(5), node.tensor(6), node.number("epsilon", 1e-12))
    return [node.shaped(total.shape, normal), _lengths(node, words), total]


def _lengths(node: Node, words: Tensor) -> Tensor:
    if not node.has(7):
        return build.zeros(node.builder, [words.shape[0]], DType.INT32)
    mask = node.tensor(7)
    return build.equal(mask, 1).cast(DType.INT32).sum([1], dtype=DType.INT32)


OPERATORS: dict[str, Callable[[Node], Sequence[Value]]] = {"EmbedLayerNormalization": embed_layer_normalization}
