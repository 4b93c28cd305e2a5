from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorkiln.build as build
from tensorkiln import Client, Graph
from tensorkiln.build import Builder
from tensorkiln.build.mistakes import OperandError, UnknownNameError
from tensorkiln.errors import InvalidGraphError, TensorkilnError
from tensorkiln.nearest import quoted
from tensorkiln.program import Program
from tests.compiled import compiled
from tests.compiled import program as program_of
from tests.contract.wire import DOUBLE
from tests.mistakes.page import PAGE, page
from tests.mistakes.tables import BUILDER, CALLS, DOCUMENTS, REQUESTS, SETUP

FUNCTIONS = [name for name in build.__all__ if name not in ("Builder", "Tensor", "ceildiv", "floordiv", "floormod")]


def written() -> dict[str, Any]:
    """What the lines with a builder find there."""
    b, h = Builder("g"), Builder("h")
    n = b.symbol("n", 1, 8)
    x, y, whole = b.input("float32", (3, 4), "x"), b.input("float32", (4, 3)), b.input("int32", (3, 4))
    other = h.input("float32", (3, 4))
    return {**vars(build), "np": np, "b": b, "n": n, "x": x, "y": y, "whole": whole, "other": other}


@pytest.mark.parametrize(("line", "said"), BUILDER.items(), ids=list(BUILDER))
def test_a_mistake_with_the_builder_is_an_invalid_graph_and_is_explained(line: str, said: str) -> None:
    with pytest.raises(InvalidGraphError) as caught:
        exec(line, written())
    assert caught.value.message == said


@pytest.mark.parametrize(("change", "said"), DOCUMENTS.items(), ids=list(DOCUMENTS))
def test_a_mistake_in_a_document_is_explained(change: str, said: str) -> None:
    graph = changed(change)
    for read in (Graph.model_validate, lambda document: Graph.model_validate_json(json.dumps(document))):
        with pytest.raises(TensorkilnError) as caught:
            read(graph)
        assert caught.value.message == said


def changed(change: str) -> dict[str, Any]:
    graph = copy.deepcopy(DOUBLE)
    nodes, symbols = graph["nodes"], graph["symbolic_vars"]
    exec(change, {"graph": graph, "nodes": nodes, "node": nodes[1], "symbol": symbols[0]})
    return graph


@pytest.mark.parametrize(("line", "said"), REQUESTS.items(), ids=list(REQUESTS))
def test_a_mistake_with_a_client_is_explained_before_a_service_is_asked(line: str, said: str, tmp_path: Path) -> None:
    with Client("http://127.0.0.1:1", cache_dir=tmp_path) as client:
        scope = {**written(), "Client": Client, "Path": Path, "client": client, "graph": json.dumps(DOUBLE)}
        with pytest.raises(TensorkilnError) as caught:
            exec(line, scope)
    assert caught.value.message == said


@pytest.fixture(scope="module")
def program() -> Program:
    b = Builder("layer")
    x, w = b.input("float32", (b.symbol("n", 1, 4096), 64)), b.input("float32", (64, 10))
    b.output(build.relu(x @ w))
    return program_of(compiled(b.graph()))


def test_a_mistake_with_a_program_is_explained(program: Program) -> None:
    scope = {"np": np, "rows": np.ones((4, 64), np.float32), "weights": np.ones((64, 10), np.float32)}
    for line, said in CALLS.items():
        with pytest.raises(TensorkilnError) as caught:
            exec(line, {**scope, "program": program})
        assert (line, caught.value.message) == (line, said)


def test_the_page_has_every_message() -> None:
    assert PAGE.read_text() == page(), "write it anew by `python -m tests.mistakes.page`"


def test_no_message_is_in_the_words_of_a_library() -> None:
    for said in (said for table in (BUILDER, DOCUMENTS, REQUESTS, CALLS, SETUP) for said in table.values()):
        for phrase in ("Input should", "Value error", "Field required", "Extra inputs", "NoneType", "Input tag"):
            assert phrase not in said


def test_there_are_many() -> None:
    assert len(BUILDER) + len(DOCUMENTS) + len(REQUESTS) + len(CALLS) >= 60


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_says_that_an_array_is_no_tensor(name: str) -> None:
    from inspect import Parameter, signature

    array = np.ones((2, 2), np.float32)
    function = getattr(build, name)
    needed = [
        each
        for each in signature(function).parameters.values()
        if each.default is Parameter.empty and each.kind is not Parameter.VAR_POSITIONAL
    ]
    given: dict[str, Any] = {each.name: array for each in needed if each.kind is not Parameter.KEYWORD_ONLY}
    given |= {each.name: 1 for each in needed if each.kind is Parameter.KEYWORD_ONLY}
    if name in ("cat", "stack"):
        given = {"tensors": [array, array]}
    if name == "einsum":
        given["subscripts"] = "ij,jk->ik"
    with pytest.raises(ValueError if name == "pack_array" else OperandError):
        function(
            *(given[each.name] for each in needed if each.kind is not Parameter.KEYWORD_ONLY),
            **{each.name: 1 for each in needed if each.kind is Parameter.KEYWORD_ONLY},
        )


def test_errors_of_the_builder_are_those_of_python_too() -> None:
    scope = written()
    with pytest.raises(TypeError):
        bool(scope["x"])
    with pytest.raises(AttributeError):
        _ = scope["x"].astype
    assert not hasattr(scope["x"], "astype")
    assert all(issubclass(each, InvalidGraphError) for each in (OperandError, UnknownNameError))


def test_quoted_text_has_no_control_characters() -> None:
    graph = changed('node["x\\n\\x1b[2J"] = 1')
    with pytest.raises(InvalidGraphError) as caught:
        Graph.model_validate_json(json.dumps(graph))
    assert r"'x\n\x1b[2J'" in caught.value.message
    assert str(caught.value).isprintable()


def test_long_text_is_cut() -> None:
    for value in ("x" * 10_000, [0] * 10_000, {"a": {"b": ["c" * 1000] * 1000}}, 10**5000):
        assert len(quoted(value)) < 80
    assert quoted("x" * 61) == f"'{'x' * 60}'…"
