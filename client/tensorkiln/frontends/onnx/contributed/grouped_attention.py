"""GroupQueryAttention: queries in groups that share keys, a cache filled to another length for each sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ....expr import Dim, maximum, mul
from ..node import Node
from ..value import Absent, Value, dims_of
from .rotary import turn
from .scaled_scores import LOWEST, heads_of, joined, scale_of

_REFUSED = {12: "k_scale", 13: "v_scale", 14: "q_norm_weight", 15: "k_norm_weight", 16: "query_seqlens"}


@dataclass(frozen=True, slots=True)
class _Lengths:
    """`before` is the number of cached tokens of each sequence, (batch, 1), in int64; `total` the greatest number of
    tokens with the new ones.
    """

    before: Tensor
    tokens: Dim
    total: Dim


def group_query_attention(node: Node) -> Sequence[Value | Absent]:
    """Attention to the cache with the new tokens; also this cache, of max(cached, total) places."""
    _refuse(node)
    heads, shared = node.integer("num_heads"), node.integer("kv_num_heads")
    if shared < 1 or heads % shared:
        node.invalid(f"{heads} heads do not share {shared} keys evenly")
    query, key, value = _split(node, heads, shared)
    lengths = _lengths(node, query.shape[2])
    if node.integer("do_rotary", 0):
        places = node.tensor(9).cast(DType.INT64) if node.has(9) else _places(lengths)
        is_paired = bool(node.integer("rotary_interleaved", 0))
        tables = node.tensor(7), node.tensor(8)
        query, key = (turn(node, each, places, *tables, is_paired) for each in (query, key))
    else:
        node.ignore("rotary_interleaved")
    key, value = _cached(node, key, 3, lengths), _cached(node, value, 4, lengths)
    return [_attended(node, query, key, value, lengths), key, value]


def _refuse(node: Node) -> None:
    for place, name in _REFUSED.items():
        if node.has(place):
            node.fail(f"the input {name} is not supported")
    for name in ("k_quant_type", "v_quant_type"):
        if node.string(name, "NONE") != "NONE":
            node.fail(f"a quantised cache ({name}) is not supported")
    for name in ("sliding_window_cache", "qk_output"):
        if node.integer(name, 0):
            node.fail(f"{name} is not supported")
    node.ignore("kv_cache_bit_width", "q_norm_epsilon", "k_norm_epsilon", "qk_norm_epsilon")


def _split(node: Node, heads: int, shared: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values by head, from three inputs or from one."""
    query = node.tensor(0)
    if query.rank != 3:
        node.invalid(f"queries of rank {query.rank} are not of shape (batch, tokens, features)")
    if node.has(1):
        return heads_of(query, heads), heads_of(node.tensor(1), shared), heads_of(node.tensor(2), shared)
    split = heads_of(query, heads + 2 * shared)
    first, second, third = build.split(split, [heads, shared, shared], 1)
    return first, second, third


def _lengths(node: Node, tokens: Dim) -> _Lengths:
    """If all tokens are new, every sequence starts at 0, although it may be padded."""
    (total,) = dims_of(node.host_dims(6).reshape(-1))
    last = node.tensor(5).cast(DType.INT64).reshape(-1, 1)
    zero = last * 0
    if not _has_cache(node):
        if isinstance(total, int) and isinstance(tokens, int) and total != tokens:
            node.invalid(f"of {total} tokens {tokens} are given, and no cache has the others")
        return _Lengths(zero, tokens, tokens)
    if total == tokens:
        return _Lengths(zero, tokens, total)
    is_first = build.equal(build.dim_value(node.builder, total), build.dim_value(node.builder, tokens))
    before = last + 1 - build.dim_value(node.builder, tokens)
    return _Lengths(build.where(is_first, zero, before), tokens, total)


def _has_cache(node: Node) -> bool:
    return node.has(3) and node.tensor(3).shape[2] != 0


def _places(lengths: _Lengths) -> Tensor:
    """The position of each new token, (batch, tokens)."""
    return lengths.before + build.arange(lengths.before.builder, lengths.tokens)


def _cached(node: Node, new: Tensor, place: int, lengths: _Lengths) -> Tensor:
    """The cache with the new tokens of each sequence behind its old ones. What lies behind these is unspecified."""
    if not _has_cache(node):
        return new
    past = node.tensor(place)
    batch, heads, held, features = past.shape
    size = held if held == lengths.total else maximum(held, lengths.total)
    columns = build.arange(node.builder, size)
    distance = columns - lengths.before
    aligned = distance.reshape(batch, 1, size, 1).expand(batch, heads, size, features)
    padded = build.pad(past, [(0, 0), (0, 0), (0, size - held), (0, 0)])
    return build.where((distance < 0).reshape(batch, 1, size, 1), padded, build.gather(new, aligned, 2))


def _attended(node: Node, query: Tensor, key: Tensor, value: Tensor, lengths: _Lengths) -> Tensor:
    batch, _, tokens, features = query.shape
    heads, shared, held = node.integer("num_heads"), node.integer("kv_num_heads"), key.shape[2]
    scale = scale_of(node, query)
    grouped = query.reshape(batch, shared, mul(heads // shared, tokens), features)
    scores = (grouped @ key.transpose(-2, -1)).cast(DType.FLOAT32) * scale
    scores = scores.reshape(batch, heads, tokens, held)
    limit = node.number("softcap", 0.0)
    if limit:
        scores = build.tanh(scores / limit) * limit
    if node.has(10):
        scores = scores + _to_width(node.tensor(10).cast(DType.FLOAT32), held)
    scores = build.where(_allowed(node, lengths, held).unsqueeze([1]), scores, LOWEST)
    weights = _normalised(node, scores, heads).cast(value.dtype)
    summed = weights.reshape(batch, shared, mul(heads // shared, tokens), held) @ value
    return joined(summed.reshape(batch, heads, tokens, features))


def _to_width(bias: Tensor, held: Dim) -> Tensor:
    """A bias with zeros for places of the cache behind the tokens."""
    if bias.shape[-1] == held:
        return bias
    return build.pad(bias, [*[(0, 0)] * (bias.rank - 1), (0, held - bias.shape[-1])])


def _allowed(node: Node, lengths: _Lengths, held: Dim) -> Tensor:
    """Whether each place of the cache takes part, (batch, tokens, places)."""
    columns, places = build.arange(node.builder, held), _places(lengths).unsqueeze([2])
    window = node.integer("local_window_size", -1)
    if not node.integer("causal", 1):
        if window > 0:
            node.invalid("local_window_size is given without causal")
        last = node.tensor(5).cast(DType.INT64).reshape(-1, 1, 1)
        return (columns <= last).expand(places.shape[0], lengths.tokens, held)
    allowed = columns <= places
    return allowed & (columns > places - window) if window > 0 else allowed


def _normalised(node: Node, scores: Tensor, heads: int) -> Tensor:
    """The softmax, with one more score for each head, its sink, that takes weight and has no value."""
    is_smooth = node.integer("smooth_softmax", -1) == 1
    if not node.has(11) and not is_smooth:
        return build.softmax(scores, -1)
    sink = node.tensor(11).cast(DType.FLOAT32).reshape(heads, 1, 1) if node.has(11) else node.builder.scalar(0.0)
    greatest = build.maximum(scores.max([-1], keepdims=True), sink)
    raised = build.exp(scores - greatest)
    return raised / (raised.sum([-1], keepdims=True) + build.exp(sink - greatest))


OPERATORS: dict[str, Callable[[Node], Sequence[Value | Absent]]] = {"GroupQueryAttention": group_query_attention}
