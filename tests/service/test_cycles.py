"""What a request had in memory is free when it is over: no cycle of references waits with it for a collection."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from service.sandbox import spawn
from service.server.serve import create_app
from service.settings import Settings
from tests.service.bodies import compile_body, encoded, graph
from tests.service.failing import failing, start_failing
from tests.service.server import JSON

LARGE = 1 << 20
SETTLED_S = 0.2
PADDING = b" " * LARGE
"""JSON that means nothing, and makes a body worth finding."""


async def send(app: FastAPI, path: str, body: bytes, **headers: str) -> tuple[int, str]:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as client:
        answer = await client.post(path, content=body, headers={**JSON, **headers}, timeout=60)
        return answer.status_code, answer.text


def held_by_cycles() -> list[str]:
    """What is large and only waits for a collection, each with the type of what leads to it."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        seen = {id(each) for each in gc.garbage}
        return [found for holder in gc.garbage for found in _large(holder, type(holder).__name__, seen)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


def _large(holder: object, way: str, seen: set[int]) -> Iterator[str]:
    for held in gc.get_referents(holder):
        if isinstance(held, bytes | bytearray) and len(held) >= LARGE:
            yield f"{len(held)} bytes by way of {way}"
        elif not gc.is_tracked(held) and id(held) not in seen:
            # A dictionary of strings and bytes is none of the collector's, but of what it collects.
            seen.add(id(held))
            yield from _large(held, f"{way}, {type(held).__name__}", seen)


OF_COMPILE = encoded(compile_body(graph(rows=-1))) + PADDING
RIGHT = encoded(compile_body(graph())) + PADDING
CASES: dict[str, tuple[str, bytes, dict[str, str], int]] = {
    "refused": ("/compile", OF_COMPILE, {}, 422),
    "no JSON": ("/compile", b"{" + PADDING, {}, 400),
    "right": ("/compile", RIGHT, {}, 200),
    "crashed": ("/compile", failing(RIGHT, "abort") + PADDING, {}, 422),
    "crashed as it was read": ("/compile", failing(RIGHT, "prepare:abort") + PADDING, {}, 422),
    "of too much output": ("/compile", failing(RIGHT, "output") + PADDING, {}, 422),
    "of too much output as it was read": ("/compile", failing(RIGHT, "prepare:output") + PADDING, {}, 422),
    "garbled": ("/compile", failing(RIGHT, "garbled_json") + PADDING, {}, 422),
    "refused as a job": ("/compile", OF_COMPILE, {"Prefer": "respond-async, wait=10"}, 422),
    "crashed as a job": ("/compile", failing(RIGHT, "abort") + PADDING, {"Prefer": "respond-async, wait=10"}, 422),
    "refused to validate": ("/validate", encoded({"graph": graph(rows=-1)}) + PADDING, {}, 422),
    "refused to explain": ("/explain", OF_COMPILE, {}, 422),
    "no batch": ("/jobs:batch", b'{"requests":[]' + PADDING, {}, 400),
}


def test_no_cycle_holds_a_body_or_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "start", start_failing())
    # The process of the tests has more in memory than a service.
    settings = Settings(home=tmp_path, compile_output_mib=8, memory_mib=1 << 20)

    async def run() -> dict[str, list[str]]:
        app = create_app(settings)
        found: dict[str, list[str]] = {}
        async with app.router.lifespan_context(app):
            # What is there by now is no request's, and takes longer to search than all that they leave.
            gc.collect()
            gc.freeze()
            for case, (path, body, headers, status) in CASES.items():
                gc.collect()
                gc.disable()
                try:
                    got, answer = await send(app, path, body, **headers)
                    assert got == status, (case, answer)
                    await asyncio.sleep(SETTLED_S)
                    found[case] = held_by_cycles()
                finally:
                    gc.enable()
        return found

    assert asyncio.run(run()) == {case: [] for case in CASES}
