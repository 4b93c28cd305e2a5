"""Digests of known graphs: stores, locks and bundles keep them for years, so no change of the code may change one."""

from __future__ import annotations

import hashlib
import json
from random import Random

import pytest

from tensorkiln.canonical import canonicalize, graph_digest
from tensorkiln.graph import Graph
from tests.bench.large_graph import large_graph
from tests.contract.random_graphs import random_graph
from tests.contract.test_inferred_types import CASES, N
from tests.contract.wire import Wire, around

GOLDEN = {
    "binop": "9b377706619cdb73",
    "unary": "dd932a605feaf241",
    "ternary": "b32e9b117b501038",
    "reshape": "1940b402fc8c6fba",
    "permute": "4339cfe0528355a2",
    "expand": "f652a7341b3f0378",
    "pad": "a3a9a362da766216",
    "shrink": "19802f518c6e26dc",
    "flip": "c87ddc8ff4734f8b",
    "cat": "59d9a3e4e0ca9e96",
    "reduce_axis": "d5c79ca6288f5e60",
    "view": "62955c50d14e8e52",
    "valid": "e4056c36c0230611",
    "index": "7a95976ec94f0b3a",
    "gep": "5d402a9a5123755a",
    "vectorize": "77bea5d8301a2a2c",
    "wmma": "8a991f2dc8954f87",
    "cast": "3f937f6a8faaf2e4",
    "bitcast": "053c47c97f6b6ef0",
    "contiguous": "d10110f912602d56",
    "detach": "72b0ea655a811999",
    "contiguous_backward": "7beae31c8c3f0a8f",
    "fuse": "1b4bca003d101310",
    "unroll": "672a2aaeb6a9ef27",
    "copy": "9909d1fe9c814fa6",
    "noop": "b3df0863cca563f8",
    "const_scalar": "2bd401550dcebf42",
    "vconst": "a7f7390059ce03ba",
    "buffer": "4d48c2bf3bcf1260",
    "define_var": "c7a873d7964f6af4",
    "unique": "31b50944fe09c293",
    "device": "2c306aa42c3cbfe9",
    "multi": "8ff0278c6993b609",
    "contract": "34b553e54b8eeae8",
    "threefry": "474ca91dc8c13cda",
    "gather": "a30a317bb208b0f2",
    "scatter": "8eb11bc1179dabfb",
    "assign": "d0c95b1db13df7c8",
    "sink": "5d8d9aa0cf0b842c",
    "kernel": "bbcc7fbc979c945e",
    "custom": "8b8c2ce4b6eb2cdc",
}
"""The first 16 digits of each digest: of the first graph that the table of legal nodes has of a kind."""

RANDOM = "328f98bccf579659"
"""Of the digests of 100 random graphs together, which have symbols, storage, assigns and dead nodes."""

LARGE = "f694dd29dc6dd66f"


def graphs_by_kind() -> dict[str, Wire]:
    """One graph of each kind in the table."""
    found: dict[str, Wire] = {}
    for tested, inputs, _ in CASES:
        kind = tested["node"]
        fields = {name: value for name, value in tested.items() if (kind, name) != ("sink", "out_var")}
        found.setdefault(kind, around(fields, inputs, N))
    return found


def digest(text: str) -> str:
    return graph_digest(canonicalize(Graph.model_validate_json(text)))


@pytest.mark.parametrize(("kind", "graph"), graphs_by_kind().items(), ids=GOLDEN)
def test_a_graph_of_each_kind_keeps_its_digest(kind: str, graph: Wire) -> None:
    assert digest(json.dumps(graph))[:16] == GOLDEN[kind]


def test_random_graphs_keep_their_digests() -> None:
    digests = [digest(json.dumps(random_graph(Random(seed)))) for seed in range(100)]
    assert hashlib.sha256("".join(digests).encode()).hexdigest()[:16] == RANDOM


def test_a_large_graph_keeps_its_digest() -> None:
    assert digest(large_graph())[:16] == LARGE
