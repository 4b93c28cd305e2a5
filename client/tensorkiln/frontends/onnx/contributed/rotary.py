"""Rotary positions: pairs of features turned by an angle that grows with the position of the token."""

from __future__ import annotations

from collections.abc import Callable

from .... import build
from ....build import Tensor
from ....dtypes import DType
from ....expr import Dim
from ..node import Node
from ..value import Value


def rotary_embedding(node: Node) -> Value:
    """Turn the heads of (batch, tokens, features), or of (batch, heads, tokens, features)."""
    x, places, cosines, sines = node.tensor(0), node.tensor(1), node.tensor(2), node.tensor(3)
    is_paired = bool(node.integer("interleaved", 0))
    heads, turned = node.integer("num_heads", 0), node.integer("rotary_embedding_dim", 0)
    if node.integer("is_packed_batching", 0):
        node.fail("sequences of several lengths in one batch (is_packed_batching) are not supported")
    if node.number("scale", 1.0) != 1:
        node.fail("a scale other than 1 is not supported")
    if x.rank not in (3, 4):
        node.invalid(f"an input of rank {x.rank} is not of rank 3 or 4")
    tokens = x.shape[1] if x.rank == 3 else x.shape[2]
    if turned and not heads and x.rank == 3:
        node.invalid("rotary_embedding_dim is given without num_heads")
    pairs = cosines.shape[-1]
    features: Dim = pairs * 2 if not turned else x.shape[-1] // heads if x.rank == 3 else x.shape[-1]
    split = x.reshape(x.shape[0], tokens, -1, features).permute(0, 2, 1, 3) if x.rank == 3 else x
    rotated = turn(node, split, _positions(places, tokens), cosines, sines, is_paired)
    return rotated.permute(0, 2, 1, 3).reshape(x.shape) if x.rank == 3 else rotated


def _positions(places: Tensor, tokens: Dim) -> Tensor:
    """(batch, tokens) as they are given, or counted from one offset for all sequences."""
    if places.rank == 2:
        return places
    return (build.arange(places.builder, tokens) + places.cast(DType.INT64)).unsqueeze([0])


def turn(node: Node, x: Tensor, places: Tensor, cosines: Tensor, sines: Tensor, is_paired: bool) -> Tensor:
    """Turn the first features of `x`, (batch, heads, tokens, features), by the angles at `places`, (batch, tokens).

    The tables are of shape (positions, pairs). The two features of a pair are neighbours if `is_paired`, else half of
    the turned features apart. The others stay.
    """
    pairs, features = cosines.shape[-1], x.shape[-1]
    if not isinstance(pairs, int) or not isinstance(features, int) or sines.shape != cosines.shape:
        node.invalid(f"tables of the shapes {cosines.shape} and {sines.shape} do not fit {features} features")
    if 2 * pairs > features:
        node.invalid(f"tables of {pairs} pairs do not fit {features} features")
    cosine, sine = (build.take(table, places).unsqueeze([1]) for table in (cosines, sines))
    whole = (0, x.shape[0]), (0, x.shape[1]), (0, x.shape[2])
    turned = build.shrink(x, [*whole, (0, 2 * pairs)])
    if is_paired:
        both = turned.reshape(*x.shape[:3], pairs, 2)
        first, second = both[..., 0], both[..., 1]
    else:
        first, second = build.split(turned, [pairs, pairs], -1)
    result = (first * cosine - second * sine, second * cosine + first * sine)
    rotated = build.stack(result, -1).reshape(turned.shape) if is_paired else build.cat(result, -1)
    if 2 * pairs == features:
        return rotated
    return build.cat([rotated, build.shrink(x, [*whole, (2 * pairs, features)])], -1)


OPERATORS: dict[str, Callable[[Node], Value]] = {"RotaryEmbedding": rotary_embedding}
