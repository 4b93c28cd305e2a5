"""A body is refused for what comes first in it, and at the first field that is too many, wherever it has them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.sandbox.tasks.envelope import (
    MOST_FIELDS,
    OF_COMPILE,
    OF_TRANSLATE,
    OF_VALIDATE,
    parse_envelope,
    parse_graph,
    parse_options,
    parse_targets,
)
from tensorkiln.build import Builder, Tensor, while_loop
from tensorkiln.errors import InvalidGraphError, RequestError, TensorkilnError
from tensorkiln.graph import Graph
from tensorkiln.limits import MAX_NODES
from tensorkiln.nodes import NODE_KINDS
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server

BODY = encoded(compile_body())
TEXT = json.dumps(graph(), separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (b'{"graph":%b,"graph":%b,"target":"x"}' % (TEXT, TEXT), "appears twice"),
        (b'{"graph":%b,"gr\\u0061ph":1,"target":"x"}' % TEXT, "appears twice"),
        (b'{"graph":%b,"target":"x","target":"x"}' % TEXT, "appears twice"),
        (b'{"graph":%b}' % TEXT, "lacks target"),
        (b'{"graph":%b,"target":"x","more":1}' % TEXT, "has a field 'more'"),
        (b'{"graph":%b,"target":NaN}' % TEXT, "is not JSON"),
        (b'{"graph":{"nodes":[1e999999]}}', "lacks target"),
        (b'{"graph":%b}' % (b"1" * 5000), "is not JSON"),
        (b'{"graph":%b,"target":"x"' % TEXT, "is not JSON"),
        (b'{"graph":%b,"target":"x"} x' % TEXT, "is not JSON"),
        (b"[%b]" % BODY, "is not a JSON object"),
        (b"", "is not JSON"),
    ],
)
def test_a_body_is_refused_for_what_comes_first(written: bytes, reason: str) -> None:
    with pytest.raises(TensorkilnError, match=reason):
        parse_envelope(written, *OF_COMPILE)


MANY = {f"k{number}": number for number in range(MAX_NODES + 1)}
PLACES = ("", "/graph", "/graph/nodes/0", "/graph/nodes/0/shape/0", "/graph/vars_metadata", "/target", "/options")


def wide(place: str) -> dict[str, Any]:
    """A compile request with very many fields at a place."""
    request: dict[str, Any] = {**compile_body(graph()), "options": {}}
    if place == "/target":
        request["target"] = {"kind": "cpu"}
    request["graph"]["nodes"][0]["shape"][0] = {"op": "add", "args": ["n", 1]}
    at: Any = request
    for step in place.split("/")[1:]:
        at = at[int(step) if step.isdigit() else step]
    at.update(MANY)
    return request


def read(body: bytes) -> None:
    fields = parse_envelope(body, *OF_COMPILE)
    parse_targets(fields["target"])
    parse_options(fields["options"])
    parse_graph(fields["graph"])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("separators", [(",", ":"), (" ,\n", " : ")])
def test_a_body_of_very_many_fields_is_refused_in_one_sentence(place: str, separators: tuple[str, str]) -> None:
    with pytest.raises(TensorkilnError) as caught:
        read(json.dumps(wide(place), separators=separators).encode())
    error = caught.value
    assert isinstance(error, InvalidGraphError if place.startswith("/graph") else RequestError)
    assert len(str(error)) < 300
    assert str(len(MANY))[:3] in str(error) or "'k0'" in str(error)


def looping(turns: int) -> dict[str, Any]:
    """A loop whose body has more vars than another object may have fields."""
    builder = Builder("looping")
    x = builder.input("float32", (4,))

    def body(y: Tensor) -> list[Tensor]:
        for _ in range(turns):
            y = y * 0.5 + 1.0
        return [y]

    builder.output(*while_loop(lambda y: y.sum() > 3.0, body, [x]))
    return json.loads(builder.graph().to_json())


def test_a_loop_may_have_as_many_vars_as_a_graph() -> None:
    document = looping(MOST_FIELDS)
    (loop,) = [node for node in document["nodes"] if node["node"] == "while"]
    assert len(loop["body"]["vars_metadata"]) > MOST_FIELDS
    assert parse_graph(document) == Graph.model_validate_json(json.dumps(document))
    loop["condition"]["vars_metadata"] |= MANY
    with pytest.raises(InvalidGraphError, match="a graph of 50000 nodes") as caught:
        parse_graph(document)
    assert caught.value.pointers[0].endswith("/condition/vars_metadata")


@pytest.mark.parametrize(("required", "optional"), [OF_COMPILE, OF_VALIDATE, OF_TRANSLATE])
def test_many_colons_of_builder_text_are_no_fields(required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    text = "\n".join("x = x[:, 1:3]" for _ in range(MOST_FIELDS))
    fields = {name: "cpu" for name in required if name == "target"}
    assert parse_envelope(json.dumps({"builder": text, **fields}).encode(), required, optional)["builder"] == text


def test_of_few_fields_each_is_told_and_no_object_of_the_contract_has_many() -> None:
    assert max(len(kind.model_fields) for kind in NODE_KINDS.values()) < MOST_FIELDS / 2
    nodes = graph()["nodes"]
    nodes[0] |= dict.fromkeys("ab", 1)
    with pytest.raises(InvalidGraphError) as caught:
        parse_graph({**graph(), "nodes": nodes})
    assert caught.value.pointers == ("/nodes/0/a", "/nodes/0/b")


def test_a_service_refuses_them(server: Server) -> None:
    for place in PLACES:
        status = 422 if place.startswith("/graph") else 400
        assert server.compile(encoded(wide(place))).status_code == status, place
