"""Short sequences of integers, counted in rows of any length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from tensorkiln.errors import TensorkilnError, UnsupportedGraphError
from tensorkiln.frontends.onnx import load
from tensorkiln.reference import evaluate
from tests.frontends.onnx.single_nodes import of_nodes

ROWS = np.array([[1, 1, 3, 3, 3, 7, 8, 6, 7, 5], [5, 6, 7, 8, 5, 6, 7, 8, 2, 3]], np.int32)
POOL: dict[str, Any] = {
    "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7, 6, 7, 8],
    "ngram_counts": [0, 4, 10],
    "ngram_indexes": [0, 1, 2, 3, 4, 5, 6, 7],
    "weights": [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
}
SIZES = [(1, 1, 0), (1, 2, 1), (2, 2, 5), (1, 3, 2), (3, 3, 0), (2, 3, 300)]


def _node(least: int, most: int, skips: int, **changed: Any) -> Any:
    attributes: dict[str, Any] = {"mode": "TF", **POOL, **changed}
    return helper.make_node(
        *("TfIdfVectorizer", ["x"], ["y"]),
        min_gram_length=least,
        max_gram_length=most,
        max_skip_count=skips,
        **attributes,
    )


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize(("least", "most", "skips"), SIZES)
def test_members_of_a_pool_are_counted_in_rows_of_any_length(mode: str, least: int, most: int, skips: int):
    proto = of_nodes([_node(least, most, skips, mode=mode)], {"x": ROWS}, opset=21)
    expected: Any = ReferenceEvaluator(proto).run(None, {"x": ROWS})
    for dim, name in zip(proto.graph.input[0].type.tensor_type.shape.dim, ("rows", "length"), strict=True):
        dim.dim_param = name
    model = load(proto, symbols={"rows": (1, 4), "length": (1, 16)})
    assert len(model.graph.nodes) < 1000
    (actual,) = evaluate(model.graph, *model.arguments(x=ROWS), rows=2, length=10)
    np.testing.assert_array_equal(actual, expected[0])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"pool_strings": ["a"]}, "graphs have no strings"),
        ({"ngram_counts": [0, 3, 10]}, "do not divide a pool of 13"),
        ({"ngram_indexes": [0] * 8}, "two members of the pool have one column"),
        ({"ngram_indexes": [*range(7), -1]}, "the negative -1"),
        ({"ngram_indexes": [*range(7), 1 << 33]}, "needs 8589934593 columns, more than 268435456"),
        ({"mode": "IDF", "weights": [1.0]}, "1 weights do not fit 8 members"),
    ],
)
def test_counts_out_of_range_are_refused(changed: dict[str, Any], message: str):
    with pytest.raises(TensorkilnError, match=message):
        load(of_nodes([_node(1, 2, 0, **changed)], {"x": ROWS}, opset=21))


def test_distances_that_long_rows_hold_are_refused_beyond_a_limit():
    rows = np.zeros((1, 4000), np.int64)
    message = r"TfIdfVectorizer #0: 1401 comparisons of rows with elements of the pool are more than 1024"
    with pytest.raises(UnsupportedGraphError, match=message):
        load(of_nodes([_node(1, 2, 699)], {"x": rows}, opset=21))
    with pytest.raises(TensorkilnError, match="max_skip_count -1 is negative"):
        load(of_nodes([_node(1, 2, -1)], {"x": ROWS}, opset=21))
