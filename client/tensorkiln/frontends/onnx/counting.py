"""TfIdfVectorizer: counts of n-grams of integers in each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import add, and_
from typing import Final

import numpy as np

from ... import build
from ...build import Tensor
from ...dtypes import DType
from .node import Node
from .value import MAX_GROWN_ELEMENTS, Host, Value

MAX_COMPARED: Final = 1 << 10
"""The most compared elements, over all n-grams and distances; each adds nodes to the graph."""


def tf_idf_vectorizer(node: Node) -> Value:
    """Counts (TF), weights of present n-grams (IDF), or their product; n-grams may skip elements."""
    x = node.tensor(0)
    if node.is_set("pool_strings"):
        node.fail("graphs have no strings")
    if x.rank not in (1, 2):
        node.invalid(f"rows are of rank 1 or 2, not {x.rank}")
    row = x if x.rank == 2 else x.unsqueeze(0)
    mode = node.choice("mode", ("TF", "IDF", "TFIDF"))
    skips = node.integer("max_skip_count")
    if skips < 0:
        node.invalid(f"max_skip_count {skips} is negative")
    pools = list(_pools(node))
    longest = row.builder.bounds(row.shape[1])[1]
    distances = [_distance_count(size, skips, longest) for size, _, _ in pools]
    compared = sum(size * count for (size, _, _), count in zip(pools, distances, strict=True))
    if compared > MAX_COMPARED:
        node.fail(f"{compared} comparisons of rows with elements of the pool are more than {MAX_COMPARED}")
    counted: list[tuple[Tensor, range]] = []
    for (_, numbers, grams), count in zip(pools, distances, strict=True):
        counted.append((reduce(add, [_counts(row, grams, distance) for distance in range(1, count + 1)]), numbers))
    total = _placed(node, row, counted)
    if mode != "TF":
        weights = node.numbers("weights", [])
        total = (total > 0.0).cast(DType.FLOAT32) if mode == "IDF" else total
        total = total * node.parameter(_by_column(node, weights)) if weights else total
    else:
        node.ignore("weights")
    return total if x.rank == 2 else total[0]


def _distance_count(size: int, skips: int, longest: int) -> int:
    """The number of distances between elements of an n-gram to check: 1, 2 and so on; at least 1."""
    # Skipping makes no difference to a single element.
    return 1 if size == 1 else min(skips + 1, max((longest - 1) // (size - 1), 1))


def _pools(node: Node) -> Iterator[tuple[int, range, Host]]:
    """For each selected n: the n, the numbers of its n-grams, and the n-grams as (members, n)."""
    pool, starts = np.asarray(node.integers("pool_int64s"), np.int64), node.integers("ngram_counts")
    least, most = node.integer("min_gram_length"), node.integer("max_gram_length")
    number = 0
    for size, (start, end) in enumerate(zip(starts, [*starts[1:], pool.size], strict=True), 1):
        if not 0 <= start <= end <= pool.size or (end - start) % size:
            node.invalid(f"ngram_counts {starts} do not divide a pool of {pool.size}")
        count = (end - start) // size
        if least <= size <= most and count:
            yield size, range(number, number + count), pool[start:end].reshape(count, size)
        number += count


def _counts(row: Tensor, grams: Host, distance: int) -> Tensor:
    """The count of each n-gram in each row, with this distance between its elements: (rows, members)."""
    builder, extent = row.builder, row.shape[1]
    start = build.arange(builder, extent)
    size = grams.shape[1]
    values = row.cast(DType.INT64)
    same = [
        build.equal(
            build.take(values, start + place * distance, 1).unsqueeze(2), builder.constant(grams[:, place], DType.INT64)
        )
        for place in range(size)
    ]
    is_inside = (start + (size - 1) * distance < build.dim_value(builder, extent)).unsqueeze(1)
    return (reduce(and_, same) & is_inside).cast(DType.FLOAT32).sum([1])


def _placed(node: Node, row: Tensor, counted: list[tuple[Tensor, range]]) -> Tensor:
    """The counts in the columns that the node assigns, zeros elsewhere."""
    columns = node.integers("ngram_indexes")
    width = max(columns, default=-1) + 1
    if min(columns, default=0) < 0:
        node.invalid(f"ngram_indexes has the negative {min(columns)}")
    if width > MAX_GROWN_ELEMENTS:
        node.fail(f"ngram_indexes needs {width} columns, more than {MAX_GROWN_ELEMENTS}")
    if len(set(columns)) != len(columns):
        node.fail("two members of the pool have one column")
    if not counted:
        return build.zeros(row.builder, (row.shape[0], width), DType.FLOAT32)
    sources = np.full(width, -1, np.int64)
    place = 0
    for _, numbers in counted:
        for number in numbers:
            sources[columns[number]] = place
            place += 1
    return build.take(build.cat([counts for counts, _ in counted], 1), node.parameter(sources), 1)


def _by_column(node: Node, weights: list[float]) -> Host:
    columns = node.integers("ngram_indexes")
    if len(weights) != len(columns):
        node.invalid(f"{len(weights)} weights do not fit {len(columns)} members of the pool")
    found = np.zeros(max(columns) + 1, np.float32)
    found[columns] = weights
    return found


OPERATORS: dict[str, Callable[[Node], Value]] = {"TfIdfVectorizer": tf_idf_vectorizer}
