"""A text that says something twice is no graph: readers would differ in which of the two they take."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tensorkiln.errors import InvalidGraphError
from tensorkiln.graph import Graph
from tensorkiln.strict_json import RepeatedKeyError, keys_in, may_repeat_keys, parse, refuse_repeated_keys

GRAPH: dict[str, Any] = {
    "schema": 1,
    "name": "g",
    "nodes": [
        {"node": "placeholder", "out_var": 0, "dtype": "float32", "shape": [4]},
        {"node": "unary", "op": "neg", "in_var": 0, "out_var": 1, "dtype": "float32"},
    ],
    "vars_metadata": {"0": {"dtype": "float32", "shape": [4], "device": None}},
    "input_vars": [0],
    "output_vars": [1],
    "symbolic_vars": [],
}
TEXT = json.dumps(GRAPH)


@pytest.mark.parametrize(
    ("once", "twice", "pointer"),
    [
        ('"name": "g"', '"name": "g", "name": "g"', "/name"),
        ('"name": "g"', '"name": "g", "n\\u0061me": "h"', "/name"),
        ('"op": "neg"', '"op": "neg", "op": "sqrt"', "/nodes/1/op"),
        ('"device": null', '"device": null, "device": null', "/vars_metadata/0/device"),
        ('{"0": {', '{"0": {"dtype": "int32", "shape": [1]}, "0": {', "/vars_metadata/0"),
    ],
)
@pytest.mark.parametrize("encode", [str, str.encode, lambda text: bytearray(text.encode())])
def test_a_repeated_key_is_refused_at_its_place(once: str, twice: str, pointer: str, encode: Any) -> None:
    assert Graph.model_validate_json(encode(TEXT)).name == "g"
    assert TEXT.count(once) == 1
    with pytest.raises(InvalidGraphError, match="appears twice in one object") as caught:
        Graph.model_validate_json(encode(TEXT.replace(once, twice)))
    assert caught.value.pointers == (pointer,)


def test_objects_with_unique_keys_are_read_as_by_json() -> None:
    assert parse(TEXT) == GRAPH
    assert parse('[{"a": 1}, {"a": 2}]') == [{"a": 1}, {"a": 2}]
    refuse_repeated_keys(TEXT)


def test_a_repetition_inside_what_another_drops_is_found() -> None:
    for read in (parse, refuse_repeated_keys):
        with pytest.raises(RepeatedKeyError):
            read('{"a": {"b": 1, "b": 2}, "a": 3}')


@pytest.mark.parametrize("layout", [{}, {"separators": (",", ":")}, {"indent": 1}, {"separators": (", ", "\t\r\n :")}])
@pytest.mark.parametrize("content", [GRAPH, [], 7, [[{"a": {"b": [{}]}}, {"a": 2}]], {"cpu:a": "cuda:1", "": "a:"}])
def test_unique_keys_are_not_reported(content: Any, layout: dict[str, Any]) -> None:
    text = json.dumps(content, **layout)
    known = keys_in(json.loads(text))
    assert not may_repeat_keys(text, known)
    assert not may_repeat_keys(text.encode(), known)


@pytest.mark.parametrize("space", ["", " ", "\t", "\n", "\r", " \r\n\t"])
def test_a_repeated_key_is_suspected_wherever_its_colon_stands(space: str) -> None:
    text = f'{{"a:b"{space}:"c:d","a:b"{space}:{{}}}}'
    assert may_repeat_keys(text, keys_in(json.loads(text)))


def test_invalid_json_is_a_value_error() -> None:
    for read in (parse, refuse_repeated_keys):
        with pytest.raises(ValueError, match="Expecting"):
            read("{")
