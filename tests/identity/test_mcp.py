"""The tools of a service have the rights of whoever calls them, and read little before they know who that is."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fastapi import Request

from service.identity.caller import Scope
from service.routes import mcp
from service.routes.mcp import MOST_BYTES
from service.server.serve import create_app
from service.settings import Settings
from tensorkiln.errors import LimitExceededError

from .guarded import GUARDED, Guarded, refusal

pytest.importorskip("mcp")
pytestmark = GUARDED

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\x1b[31m"
GRAPH: dict[str, Any] = {
    "schema": 1,
    "name": "one",
    "nodes": [{"node": "placeholder", "out_var": 0, "dtype": "float32", "shape": [3]}],
    "input_vars": [0],
    "output_vars": [0],
    "symbolic_vars": [],
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def message(tool: str, **arguments: Any) -> bytes:
    call = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()


def called(guarded: Guarded, key: str | None, tool: str, **arguments: Any) -> tuple[bool, dict[str, Any]]:
    response = guarded.send(key, "POST", "/mcp", message(tool, **arguments), **ACCEPT)
    assert response.status_code == 200, response.text
    result = response.json()["result"]
    return result.get("isError", False), result["structuredContent"]


def test_a_tool_does_what_its_caller_may_do(guarded: Guarded) -> None:
    worker, reader = guarded.key("tools"), guarded.key("tools", Scope.CACHE_READ)
    stranger, admin = guarded.key("others", Scope.CACHE_READ), guarded.key("tools", Scope.ADMIN)
    failed, compiled = called(guarded, worker, "compile", graph=GRAPH, targets=["cpu:x86-64-v3"])
    assert not failed
    digest = compiled["programs"][0]["digest"]
    assert called(guarded, reader, "program", digest=digest)[0] is False
    failed, refused = called(guarded, stranger, "program", digest=digest)
    assert (failed, refused["error"]["code"]) == (True, "request.not_found")
    failed, paged = called(guarded, reader, "report", digest=digest)
    assert (failed, paged["url"]) == (False, f"{guarded.url}/programs/{digest}/report")
    assert guarded.send(reader, "GET", paged["path"]).status_code == 200
    assert refusal(guarded.send(None, "GET", paged["path"])) == (401, "auth.missing")
    assert called(guarded, stranger, "report", digest=digest)[1]["error"]["code"] == "request.not_found"
    for key, tool, arguments in (
        (reader, "validate", {"graph": GRAPH}),
        (admin, "compile", {"graph": GRAPH, "targets": ["cpu"]}),
        (admin, "program", {"digest": digest}),
    ):
        failed, refused = called(guarded, key, tool, **arguments)
        assert (failed, refused["error"]["code"]) == (True, "auth.forbidden")


@pytest.mark.parametrize(
    ("server", "headers", "url"),
    [
        (("127.0.0.1", 8080), {"host": "127.0.0.1:8080"}, "http://127.0.0.1:8080"),
        (("10.0.0.7", 8080), {"host": "kiln.example", "x-forwarded-proto": "https"}, "https://kiln.example"),
        (("10.0.0.7", 8080), {"host": "kiln.example", "x-forwarded-proto": "javascript"}, "http://kiln.example"),
        (("10.0.0.7", 8080), {}, None),
        (("/run/kiln/socket", None), {"host": "kiln.example"}, None),
        (None, {"host": "kiln.example"}, None),
    ],
)
def test_the_url_of_a_service_is_the_one_that_its_caller_uses(
    server: Any, headers: dict[str, str], url: str | None
) -> None:
    named = [(name.encode(), value.encode()) for name, value in headers.items()]
    outer = Request({"type": "http", "scheme": "http", "server": server, "headers": named, "path": "/mcp"})
    assert mcp.InnerRequests(outer).base_url == url


def test_unknown_callers_are_refused_by_the_tools(guarded: Guarded) -> None:
    assert refusal(guarded.send(None, "POST", "/mcp", message("capabilities"), **ACCEPT)) == (401, "auth.missing")
    assert refusal(guarded.send("kiln_wrong", "POST", "/mcp", message("capabilities"), **ACCEPT)) == (
        401,
        "auth.invalid",
    )


def test_a_message_is_json_and_no_longer_than_the_service_will_parse(guarded: Guarded) -> None:
    key = guarded.key("tools")
    long = message("validate", graph={**GRAPH, "name": "x" * MOST_BYTES})
    assert refusal(guarded.send(key, "POST", "/mcp", long, **ACCEPT)) == (413, "limit.exceeded")
    text = guarded.send(key, "POST", "/mcp", None, **ACCEPT)
    assert refusal(text) == (415, "request.invalid")
    deep = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert guarded.send(key, "POST", "/mcp", deep, **ACCEPT).status_code == 400
    assert refusal(guarded.send(key, "GET", "/mcp", None, **ACCEPT)) == (405, "request.invalid")


def test_an_answer_that_is_too_long_to_parse_is_refused(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, whose limit is a small one: the answer of a real application to a real request."""
    monkeypatch.setattr(mcp, "MOST_ANSWER_BYTES", 100)
    app = create_app(Settings(store=str(guarded.home / "other"), auth="off"))

    async def answered() -> bytes:
        scope = {"type": "http", "asgi": {}, "http_version": "1.1", "server": None, "client": None, "scheme": "http"}
        outer = Request({**scope, "app": app, "headers": [], "method": "POST", "path": "/mcp"})
        return await mcp.InnerRequests(outer).get("/openapi.json")

    with pytest.raises(LimitExceededError, match=r"GET /openapi\.json is too long"):
        asyncio.run(answered())


def test_text_of_the_caller_is_returned_as_data(guarded: Guarded) -> None:
    key = guarded.key("tools")
    failed, refused = called(guarded, key, "validate", graph={**GRAPH, "name": HOSTILE})
    assert isinstance(refused, dict)
    failed, refused = called(guarded, key, "compile", graph=GRAPH, targets=[HOSTILE])
    assert (failed, refused["error"]["code"]) == (True, "request.invalid")
    failed, refused = called(guarded, key, HOSTILE)
    assert HOSTILE not in refused["error"]["message"]
