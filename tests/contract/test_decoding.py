"""What msgspec reads of a graph is what pydantic reads, field for field; what it cannot judge it leaves alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tensorkiln.errors import InvalidGraphError, TensorkilnError
from tensorkiln.graph import Graph
from tensorkiln.nodes import NODE_KINDS
from tensorkiln.nodes.base import Record
from tensorkiln.nodes.decoding import decoder
from tests.bench.large_graph import large_graph
from tests.contract.random_graphs import random_graph
from tests.contract.test_inferred_types import CASES, F, N
from tests.contract.test_mutations import mutated
from tests.contract.test_shortcuts import KINDS
from tests.contract.wire import Type, Wire, around, placeholder, wire

LEFT_TO_PYDANTIC = {"kernel", "custom"}
IN_THREADS = """
import sys
sys.setswitchinterval(1e-6)
from threading import Barrier, Thread
from tensorkiln.graph import Graph
together, found = Barrier(8), []

def read():
    together.wait()
    found.append(Graph.decoded(sys.argv[1]).to_json())

threads = [Thread(target=read) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found), len(set(found)))
"""

decode = decoder(Graph)


def read_by_pydantic(text: str) -> Graph:
    return Graph.__pydantic_validator__.validate_json(text)


def contents(value: Any) -> Any:
    """A record with the order of its fields, which of them were stated, and the types of what is in them."""
    if isinstance(value, Record):
        fields = [(name, contents(item)) for name, item in value.__dict__.items()]
        return type(value), fields, value.model_fields_set, value.__pydantic_extra__
    if isinstance(value, dict):
        return [(key, contents(item)) for key, item in value.items()]
    if isinstance(value, tuple):
        return [contents(item) for item in value]
    return type(value), repr(value)


def alike(text: str) -> None:
    found = Graph.decoded(text)
    assert found is not None
    expected = read_by_pydantic(text)
    assert contents(found) == contents(expected)
    assert found == expected
    assert (found.types, found.constraints, found.symbols) == (expected.types, expected.constraints, expected.symbols)
    assert found.to_json() == expected.to_json()
    assert Graph.decoded(text.encode()) == Graph.decoded(bytearray(text.encode())) == expected


@pytest.mark.parametrize(("tested", "inputs"), KINDS, ids=[tested["node"] for tested, _ in KINDS])
def test_every_kind_but_two_is_read_alike(tested: Wire, inputs: list[Type]) -> None:
    text = json.dumps(around(tested, inputs, N))
    if tested["node"] in LEFT_TO_PYDANTIC:
        assert Graph.decoded(text) is None
        assert Graph.model_validate_json(text) == read_by_pydantic(text)
    else:
        alike(text)


def test_the_cases_have_all_that_is_left_to_pydantic() -> None:
    assert {str(tested["node"]) for tested, _ in KINDS} & NODE_KINDS.keys() >= LEFT_TO_PYDANTIC


def test_a_large_graph_is_read_alike() -> None:
    alike(large_graph())


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_a_random_graph_is_read_alike(seed: int) -> None:
    alike(json.dumps(random_graph(Random(seed))))


@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_a_broken_graph_is_read_as_pydantic_reads_it_or_not_at_all(seed: int, ascii_only: bool) -> None:
    random = Random(seed)
    tested, inputs, _ = random.choice(CASES)
    graph = mutated(random, random_graph(random, 8) if random.randrange(3) == 0 else around(tested, inputs, N))
    text = json.dumps(graph, ensure_ascii=ascii_only)
    found = decode(text)
    if found is None:
        return
    outcomes = [outcome(lambda: read_by_pydantic(text)), outcome(lambda: inferred(found))]
    assert outcomes[0] == outcomes[1]


def inferred(graph: Graph) -> Graph:
    graph.model_post_init(None)
    return graph


def outcome(read: Callable[[], Graph]) -> Any:
    try:
        return contents(read())
    except TensorkilnError as error:
        return type(error), error.message, error.pointers


def graph_with(**changes: Any) -> str:
    neg = {"node": "unary", "op": "neg", "in_var": 0, "out_var": 1, "dtype": F}
    graph = wire([placeholder(0, F, [4]), neg], [0], [1], {"n": (1, 4)}, {0: (F, [4])})
    return json.dumps({**graph, **changes})


@pytest.mark.parametrize(
    ("stated", "written"),
    [
        ('"schema": 1', '"schema": true'),
        ('"schema": 1', '"schema": 1.0'),
        ('"in_var": 0', '"in_var": -0'),
        ('"in_var": 0', '"in_var": 0.0'),
        ('"in_var": 0', '"in_var": "0"'),
        ('"in_var": 0', '"in_var": false'),
        ('"in_var": 0', f'"in_var": {2**63}'),
        ('"out_var": 1', '"out_var": 1e0'),
        ('"out_var": 1', '"out_var": 01'),
        ('"shape": [4]', '"shape": [4.0]'),
        ('"shape": [4]', '"shape": [true]'),
        ('"shape": [4]', '"shape": ["n\\n"]'),
        ('"shape": [4]', '"shape": [4,]'),
        ('"name": "test"', '"name": "test\\n"'),
        ('"name": "test"', '"name": null'),
        ('"name": "test"', '"name": "\\ud800"'),
        ('"0": {', '"-0": {'),
        ('"0": {', '"\\u002d0": {'),
        ('"0": {', '"00": {'),
        ('"0": {', '"+0": {'),
        ('"0": {', '" 0": {'),
        ('"0": {', '"0.0": {'),
        ('"op": "neg"', '"op": "NEG"'),
        ('"op": "neg"', '"op": "neg", "more": 1'),
        ('"op": "neg"', '"op": "neg", "op": "neg"'),
        ('"node": "unary"', '"node": "binop"'),
        ('"node": "unary"', '"node": "unary", "node": "unary"'),
        ('"node": "unary", ', ""),
        ('"schema": 1', '"schema_version": 1, "x": NaN'),
    ],
)
def test_what_pydantic_refuses_is_left_to_it(stated: str, written: str) -> None:
    text = graph_with()
    assert stated in text
    alike(text)
    broken = text.replace(stated, written)
    assert Graph.decoded(broken) is None
    with pytest.raises((ValidationError, TensorkilnError)):
        Graph.model_validate_json(broken)


def test_an_unpaired_surrogate_is_left_to_pydantic() -> None:
    text = graph_with().replace("test", "\ud800")
    assert Graph.decoded(text) is None
    with pytest.raises(InvalidGraphError, match="not JSON: a string has an unpaired surrogate"):
        Graph.model_validate_json(text)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_text_in_another_encoding_is_left_to_pydantic(encoding: str) -> None:
    text = graph_with().replace("test", "tëst")
    assert Graph.decoded(text.encode(encoding)) is None


@settings(max_examples=500, deadline=None)
@given(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    )
)
def test_a_literal_is_the_number_that_python_reads(written: str) -> None:
    node = {"node": "const_scalar", "value": "PLACE", "dtype": "float64", "out_var": 0}
    text = json.dumps(wire([node], [], [0])).replace('"PLACE"', written)
    found = decode(text)
    expected = json.loads(written)
    if found is None:
        assert expected in (float("inf"), float("-inf"))
        return
    (literal,) = (each.model_dump()["value"] for each in found.nodes)
    assert (type(literal), literal) == (type(expected), expected)


def test_metadata_that_is_alike_is_one_record() -> None:
    nodes = [placeholder(0, F, ["n"]), placeholder(1, F, ["n"]), placeholder(2, F, [4])]
    metadata = {0: (F, ["n"]), 1: (F, ["n"]), 2: (F, [4])}
    found = Graph.decoded(json.dumps(wire(nodes, [0, 1, 2], [0], {"n": (1, 4)}, metadata)))
    assert found is not None
    assert found.vars_metadata[0] is found.vars_metadata[1]
    assert found.vars_metadata[0] != found.vars_metadata[2]


@pytest.mark.parametrize("_attempt", range(6))
def test_the_first_graphs_of_a_process_can_be_read_in_many_threads(_attempt: int) -> None:
    command = [sys.executable, "-W", "error", "-c", IN_THREADS, graph_with()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "8 1\n"), ended.stderr
