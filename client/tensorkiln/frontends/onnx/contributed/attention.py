"""Attention and MultiHeadAttention: the projections, masks and caches around scaled scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ....expr import Dim
from ..node import Node
from ..value import Absent, Value
from .bias import biased
from .scaled_scores import causal, features_of, heads_of, joined, scale_of, weighted


def attention(node: Node) -> Sequence[Value | Absent]:
    """Attention of projected tokens to themselves, and to a cache. The second output is the cache with these tokens."""
    projected = biased(node, node.tensor(0) @ node.tensor(1), 2)
    if node.has(6):
        node.fail("a cache in a buffer of a fixed length (past_sequence_length) is not supported")
    bias = node.tensor(5) if node.has(5) else None
    return attended(node, projected, 3, node.tensor(4) if node.has(4) else None, bias)


def attended(
    node: Node, projected: Tensor, mask: int, past: Tensor | None, bias: Tensor | None
) -> Sequence[Value | Absent]:
    """Attend by the node's attributes; `projected` holds queries, keys and values, `mask` is the place of the mask."""
    heads = node.integer("num_heads")
    for name in ("do_rotary", "past_present_share_buffer"):
        if node.integer(name, 0):
            node.fail(f"{name} is not supported")
    node.ignore("rotary_embedding_dim")
    if projected.rank != 3:
        node.invalid(f"an input of rank {projected.rank} is not of shape (batch, tokens, features)")
    width = features_of(node, projected)
    sizes = node.integers("qkv_hidden_sizes", [width // 3] * 3)
    query, key, value = (heads_of(part, heads) for part in build.split(projected, sizes, -1))
    if past is not None:
        # Keys and values are the two halves of the cache.
        key, value = (build.cat([past[place], new], 2) for place, new in enumerate((key, value)))
    result = _scored(node, query, key, value, _padding(node, mask, query, key), bias)
    if not node.is_read(1):
        return [result]
    return [result, build.stack([key, value], 0)]


def _scored(
    node: Node, query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, bias: Tensor | None
) -> Tensor:
    """The joined heads of the result. A masked score gets `mask_filter_value`; one of a later token takes no part."""
    scale = scale_of(node, query)
    if padding is not None:
        masked = build.where(
            padding, 0.0, build.full(node.builder, [], node.number("mask_filter_value", -1e4), "float32")
        )
        bias = masked if bias is None else masked + bias.cast(DType.FLOAT32)
    else:
        node.ignore("mask_filter_value")
    allowed = causal(node, query.shape[2], key.shape[2]) if node.integer("unidirectional", 0) else None
    return joined(weighted(query, key, value, scale, bias, allowed))


def _padding(node: Node, place: int, query: Tensor, key: Tensor) -> Tensor | None:
    """Whether each key takes part, from a mask or from lengths, aligned to the scores. None without a mask."""
    if not node.has(place):
        return None
    mask = node.tensor(place)
    batch, total = key.shape[0], key.shape[2]
    columns = build.arange(node.builder, total)
    if mask.rank == 1:
        lengths = mask.cast(DType.INT64)
        if mask.shape[0] == batch:
            return columns < lengths.reshape(batch, 1, 1, 1)
        if mask.shape[0] == batch * 2:
            ends, starts = build.split(lengths, [batch, batch], 0)
            return (columns < ends.reshape(batch, 1, 1, 1)) & (columns >= starts.reshape(batch, 1, 1, 1))
    if mask.rank == 2 and mask.shape in ((batch, total), (1, total)):
        return (mask > 0).unsqueeze([1, 2])
    if mask.rank == 3 and mask.shape[1:] == (query.shape[2], total):
        return (mask > 0).unsqueeze([1])
    node.fail(
        f"a mask of the shape {mask.shape} is not supported for {batch} sequences with {query.shape[2]} queries and "
        f"{total} keys; supported are (batch,), (2 * batch,), (batch, keys) and (batch, queries, keys)"
    )


def multi_head_attention(node: Node) -> Sequence[Value | Absent]:
    """Attention of projected queries to projected keys and a cache; also the keys and values with the cache."""
    heads = node.integer("num_heads")
    for place, name in ((8, "past_sequence_length"), (9, "cache_indirection")):
        if node.has(place):
            node.fail(f"a cache in a buffer of a fixed length ({name}) is not supported")
    if node.is_read(3):
        node.fail("the output of the normalised scores is not supported")
    query, key, value = _projected(node, heads)
    if node.has(6) != node.has(7):
        node.invalid("one of past_key and past_value is given without the other")
    if node.has(6):
        key, value = build.cat([node.tensor(6), key], 2), build.cat([node.tensor(7), value], 2)
    bias = node.tensor(5) if node.has(5) else None
    result = _scored(node, query, key, value, _padding(node, 4, query, key), bias)
    return [result, key, value][: node.output_count]


def _projected(node: Node, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of shape (batch, heads, tokens, features), with the bias of their projections."""
    query = node.tensor(0)
    if query.rank == 5:
        return _with_bias(node, heads, *(query[:, :, :, place].permute(0, 2, 1, 3) for place in range(3)))
    if query.rank != 3:
        node.invalid(f"queries of rank {query.rank} are not of rank 3 or 5")
    split = heads_of(query, heads)
    if not node.has(1):
        node.invalid("no keys are given")
    key = node.tensor(1)
    if key.rank == 5:
        keys, values = (key[:, :, :, place].permute(0, 2, 1, 3) for place in range(2))
        return _with_bias(node, heads, split, keys, values)
    value = node.tensor(2)
    if key.rank == 4:
        # These come from a cache: they have heads, and their bias.
        return _with_bias(node, heads, split, key, value, is_cached=True)
    return _with_bias(node, heads, split, heads_of(key, heads), heads_of(value, heads))


def _with_bias(
    node: Node, heads: int, query: Tensor, key: Tensor, value: Tensor, *, is_cached: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    if not node.has(3):
        return query, key, value
    bias = node.tensor(3)
    widths: list[Dim] = [heads * part.shape[-1] for part in (query, key, value)]
    parts = build.split(bias, widths, 0)
    aligned = [part.reshape(heads, 1, -1) for part in parts]
    if is_cached:
        return query + aligned[0], key, value
    return query + aligned[0], key + aligned[1], value + aligned[2]


OPERATORS: dict[str, Callable[[Node], Sequence[Value | Absent]]] = {
    "Attention": attention,
    "MultiHeadAttention": multi_head_attention,
}
