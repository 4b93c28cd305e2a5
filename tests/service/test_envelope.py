"""A body is refused for what comes first in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.sandbox.tasks.envelope import OF_COMPILE, parse_envelope
from tensorkiln.errors import TensorkilnError
from tests.service.bodies import compile_body, encoded, graph

BODY = encoded(compile_body())
TEXT = json.dumps(graph(), separators=(",", ":")).encode()


def parsed(body: bytes) -> dict[str, Any]:
    return parse_envelope(body, *OF_COMPILE)


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
        parsed(written)


@pytest.mark.parametrize(
    ("stated", "written", "pointers"),
    [
        (b'"schema": 1', b'"schema": 1,"schema":1', ["/graph/schema"]),
        (b'"dtype":', b'"dtype":"int8","dtype":', ["/graph/nodes/0/dtype"]),
    ],
)
def test_a_key_that_stands_twice_in_a_graph_is_pointed_at(stated: bytes, written: bytes, pointers: list[str]) -> None:
    body = BODY.replace(stated, written, 1)
    assert body != BODY
    with pytest.raises(TensorkilnError, match="appears twice") as caught:
        parsed(body)
    assert list(caught.value.pointers) == pointers
